// Unsigned LEB128 integers below 2^64. Numbers of 2^53 and more are rounded.

/**
 * Reads `out.length` integers from the section into `out`.
 * A section that ends early, or has bytes left over, is an error: columns of unequal length are no profile.
 */
export function readVarints(bytes, out) {
  let at = 0;
  const length = bytes.length;
  for (let index = 0; index < out.length; index++) {
    let byte = bytes[at++];
    if (byte < 128) {
      out[index] = byte;
      continue;
    }
    let value = byte & 127;
    let scale = 128;
    do {
      if (at >= length || scale > 2 ** 63) {
        throw new Error('a number does not end');
      }
      byte = bytes[at++];
      // Bit operations would cut the value to 32 bits.
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    out[index] = value;
  }
  if (at !== length) {
    throw new Error(`a section has ${length} bytes instead of ${at}`);
  }
  return out;
}
