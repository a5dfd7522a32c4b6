// Search: a regular expression against each distinct frame, once.

/**
 * Compiles the text of the search field. A text without an upper-case letter ignores case. Returns
 * `{ regex, error }`; both are null for an empty text.
 */
export function compileSearch(text) {
  if (text === '') {
    return { regex: null, error: null };
  }
  const withoutEscapes = text.replace(/\\./g, '');
  const flags = /\p{Lu}/u.test(withoutEscapes) ? 'u' : 'iu';
  try {
    return { regex: new RegExp(text, flags), error: null };
  } catch {
    try {
      // Without the flag, expressions such as `\-` are accepted too.
      return { regex: new RegExp(text, flags.replace('u', '')), error: null };
    } catch (error) {
      return { regex: null, error: error.message.replace(/^Invalid regular expression: /, '') };
    }
  }
}

/** 1 for each frame whose name matches. */
export function matchingFrames(profile, regex) {
  const matches = new Uint8Array(profile.frames);
  for (let frame = 0; frame < profile.frames; frame++) {
    matches[frame] = regex.test(profile.name(frame)) ? 1 : 0;
  }
  return matches;
}

/** The expression that matches exactly this name. */
export function exactly(name) {
  return `^${name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$`;
}

/** The set with one frame. */
export function onlyFrame(profile, frame) {
  const matches = new Uint8Array(profile.frames);
  matches[frame] = 1;
  return matches;
}
