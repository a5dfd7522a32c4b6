// The text of the profile's element to bytes: base64, then zlib.

/** Letters decoded at a time: a multiple of 4, so that each piece is whole bytes. */
const PIECE_LETTERS = 1 << 20;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const INVALID = 255;

const SEXTETS = new Uint8Array(128).fill(INVALID);
for (let value = 0; value < 64; value++) {
  SEXTETS[ALPHABET.charCodeAt(value)] = value;
}

/** Decodes base64 without padding: `from` to `to` of the text, a multiple of 4 letters but at the end. */
export function decodeBase64(text, from, to) {
  const out = new Uint8Array(Math.floor(((to - from) * 3) / 4));
  let written = 0;
  let bits = 0;
  let held = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    const sextet = code < 128 ? SEXTETS[code] : INVALID;
    if (sextet === INVALID) {
      throw new Error(`letter ${at} is not base64`);
    }
    bits = ((bits << 6) | sextet) & 0xffffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out[written++] = bits >> held;
    }
  }
  return out;
}

/** The inflated bytes of a base64 text. The text is decoded piece by piece while the stream inflates. */
export async function inflateText(text) {
  text = text.trim();
  let end = text.length;
  while (end > 0 && text[end - 1] === '=') {
    end--;
  }
  let at = 0;
  const pieces = new ReadableStream({
    pull(controller) {
      if (at >= end) {
        controller.close();
        return;
      }
      const to = Math.min(at + PIECE_LETTERS, end);
      controller.enqueue(decodeBase64(text, at, to));
      at = to;
    },
  });
  const reader = pieces.pipeThrough(new DecompressionStream('deflate')).getReader();
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    chunks.push(value);
    size += value.length;
  }
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
