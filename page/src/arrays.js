// Arrays that are as narrow as their numbers allow.

/** The narrowest array of unsigned integers for numbers below `limit`. */
export function arrayFor(limit, length) {
  const Kind = limit <= 256 ? Uint8Array : limit <= 65536 ? Uint16Array : Uint32Array;
  return new Kind(length);
}
