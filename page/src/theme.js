// Light and dark: the choice of the page, or of the system.

const SYSTEM = window.matchMedia('(prefers-color-scheme: dark)');

export function isDark(theme) {
  return theme === 'auto' ? SYSTEM.matches : theme === 'dark';
}

/** Marks the document, so that the style sheet follows. Returns the colours that canvases need. */
export function applyTheme(theme) {
  const dark = isDark(theme);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    isDark: dark,
    background: colour('--graph'),
    page: colour('--page'),
    quietText: colour('--quiet-text'),
    accent: colour('--accent'),
    quiet: colour('--bar'),
    quietest: colour('--quietest'),
  };
}

export function onSystemTheme(handler) {
  SYSTEM.addEventListener('change', handler);
}
