// Numbers for people.

const SI_UNITS = ['', 'k', 'M', 'G', 'T'];
const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Three significant digits, without an exponent. */
function digits(number) {
  const size = Math.abs(number);
  if (size === 0) {
    return '0';
  }
  return number.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(number, step, units) {
  let power = 0;
  while (Math.abs(number) >= step * 0.9995 && power + 1 < units.length) {
    number /= step;
    power++;
  }
  return [number, units[power]];
}

function duration(ns) {
  const size = Math.abs(ns);
  if (size < 999.5) {
    return `${Number.isInteger(ns) ? ns : digits(ns)} ns`;
  }
  if (size < 999.5e3) {
    return `${digits(ns / 1e3)} µs`;
  }
  if (size < 999.5e6) {
    return `${digits(ns / 1e6)} ms`;
  }
  if (size < 119.5e9) {
    return `${digits(ns / 1e9)} s`;
  }
  if (size < 7170e9) {
    return `${digits(ns / 60e9)} min`;
  }
  return `${digits(ns / 3600e9)} h`;
}

/** Nanoseconds of the units of time. */
export const TIME_UNITS = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };

/** A value in the unit that suits its size: ns to hours, bytes to TiB, counts with thousands. */
export function formatValue(value, unit) {
  if (unit in TIME_UNITS) {
    return duration(value * TIME_UNITS[unit]);
  }
  if (unit === 'bytes') {
    const [number, name] = scaled(value, 1024, BYTE_UNITS);
    return `${name === 'B' && Number.isInteger(number) ? number : digits(number)} ${name}`;
  }
  if (unit === 'billionths') {
    return `${Number((value / 1e9).toPrecision(3))}`;
  }
  const suffix = unit === 'count' || unit === '' ? '' : ` ${unit}`;
  if (Math.abs(value) < 10000) {
    return `${Number.isInteger(value) ? value : digits(value)}${suffix}`;
  }
  const [number, name] = scaled(value, 1000, SI_UNITS);
  return `${digits(number)}${name === '' ? '' : ` ${name}`}${suffix}`;
}

/** A value within some milliseconds as cores, threads, or a value per second. */
export function formatRate(value, ms, { name, unit, snapshot }) {
  if (snapshot) {
    return formatValue(value, unit);
  }
  if (unit in TIME_UNITS) {
    return `${digits((value * TIME_UNITS[unit]) / (ms * 1e6))} ${name === 'cpu' ? 'cores' : 'threads'}`;
  }
  return `${formatValue((value * 1e3) / ms, unit)}/s`;
}

/** A part of a whole in percent. */
export function formatShare(part, whole) {
  if (!(whole > 0)) {
    return '–';
  }
  const percent = (part / whole) * 100;
  const size = Math.abs(percent);
  if (size > 0 && size < 0.005) {
    return percent < 0 ? '−<0.01 %' : '<0.01 %';
  }
  return `${signOf(percent)}${size.toFixed(size >= 99.995 ? 0 : 2)} %`;
}

/** A part of a whole in points of percent, for a difference of shares. */
export function formatPoints(part) {
  const points = Math.abs(part) * 100;
  if (points === 0) {
    return '0 points';
  }
  return points < 0.005 ? '<0.01 points' : `${points.toFixed(points >= 99.995 ? 0 : 2)} points`;
}

function signOf(number) {
  return number < 0 ? '−' : '';
}

/** A difference, with its sign. */
export function formatChange(change, format) {
  return change > 0 ? `+${format(change)}` : change < 0 ? `−${format(-change)}` : format(0);
}

/**
 * The time of day, with the date where the span of the profile is longer than a day, and with milliseconds
 * where times are finer than seconds.
 */
export function formatTime(unixMs, spanMs, finestMs = 1000) {
  const time = new Date(unixMs);
  const two = (number) => String(number).padStart(2, '0');
  const part = finestMs < 1000 ? `.${String(time.getMilliseconds()).padStart(3, '0')}` : '';
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} `;
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':') + part;
  return spanMs > 86_400_000 ? day + clock : clock;
}

/** The time at which a step begins; the step may have a fraction. */
export function stepTime({ startUnixMs, stepMs, count }, step) {
  return formatTime(startUnixMs + step * stepMs, stepMs * count, stepMs);
}

/**
 * The text's beginning within `room`, before an ellipsis; the whole text if it fits, "" if nothing useful
 * does.
 */
export function cutRight(text, room, widthOf) {
  let width = 0;
  for (let at = 0; at < text.length; at++) {
    width += widthOf(text.charCodeAt(at));
    if (width > room) {
      return cutBefore(text, at, room, widthOf);
    }
  }
  return text;
}

/** The longest beginning of the text before `cut` that leaves room for the ellipsis. */
function cutBefore(text, cut, room, widthOf) {
  let width = widthOf(ELLIPSIS.charCodeAt(0));
  let at = 0;
  while (at < cut && width + widthOf(text.charCodeAt(at)) <= room) {
    width += widthOf(text.charCodeAt(at));
    at++;
  }
  // Half of a surrogate pair is no letter.
  if (at > 0 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) {
    at--;
  }
  return at < 2 ? '' : text.slice(0, at) + ELLIPSIS;
}

/** The first of the texts that fits within `room`, or else the last one's beginning. */
export function fitting(texts, room, widthOf) {
  for (const text of texts) {
    const cut = cutRight(text, room, widthOf);
    if (cut === text || text === texts[texts.length - 1]) {
      return cut;
    }
  }
  return '';
}

const ELLIPSIS = '…';
