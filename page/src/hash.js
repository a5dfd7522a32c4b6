// A number that stands for a text.

/** A whole number below 2^32 that depends on the text alone. */
export function hash32(text) {
  let state = 2166136261;
  for (let at = 0; at < text.length; at++) {
    state = Math.imul(state ^ text.charCodeAt(at), 16777619);
  }
  state ^= state >>> 15;
  state = Math.imul(state, 2246822507);
  state ^= state >>> 13;
  return state >>> 0;
}
