// Prints the functions of each type of a page as one JSON document. The page's own code reads and sums them.
//
//   scripts/page.sh node page/test/support/sums.mjs PAGE

import { readFileSync } from 'node:fs';
import { inflateText } from '../../src/inflate.js';
import { Profile } from '../../src/profile.js';
import { modelOf } from './open.mjs';

const [, text] = readFileSync(process.argv[2], 'utf8').match(/id="profile">([^<]*)</);
const profile = new Profile(await inflateText(text));
const types = profile.types.map(({ name, unit }, type) => {
  const model = modelOf(profile, { type });
  const sides = model.functions();
  const functions = [];
  for (let frame = 0; frame < profile.frames; frame++) {
    const total = sides.map((side) => side.total[frame]);
    if (total.some((value) => value > 0)) {
      functions.push({
        name: profile.name(frame),
        detail: profile.detail(frame),
        self: sides.map((side) => side.self[frame]),
        total,
      });
    }
  }
  return { name, unit, totals: model.totals, functions };
});
console.log(JSON.stringify({ types }));
