// Elements of the page. Texts of a profile reach the page only as text nodes.

/**
 * Creates an element. Properties: `class`, `text`, `on` (handlers by event), `data` (data attributes), others
 * as attributes; `false` and `null` leave an attribute out.
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) {
      continue;
    }
    if (name === 'text') {
      element.textContent = value;
    } else if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) {
        element.addEventListener(event, handler);
      }
    } else if (name === 'data') {
      Object.assign(element.dataset, value);
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button with a short text and the title that explains it. */
export function button(text, title, onClick, properties = {}) {
  return el('button', {
    type: 'button',
    title,
    'aria-label': title,
    ...properties,
    text,
    on: { click: onClick },
  });
}

/** A list to choose from: `options` are `[value, text]`. */
export function chooser(title, options, onChange) {
  const select = el('select', { title, 'aria-label': title, on: { change: () => onChange(select.value) } });
  for (const [value, text] of options) {
    select.append(el('option', { value, text }));
  }
  return select;
}

/** Marks a button as pressed or not. */
export function press(element, isPressed) {
  element.setAttribute('aria-pressed', String(isPressed));
}

/** Places an absolutely positioned element at a point, within the window. */
export function placeAt(element, x, y) {
  const { offsetWidth, offsetHeight } = element;
  const left = Math.max(4, Math.min(x, window.innerWidth - offsetWidth - 4));
  const top = y + offsetHeight + 4 > window.innerHeight ? Math.max(4, y - offsetHeight - 24) : y;
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
}
