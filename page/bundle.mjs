// The ES modules of a folder as one classic script, without a packager: each module's imports first, exports
// stripped, everything in one function. Names at the top of modules must differ.

import { readFileSync } from 'node:fs';
import path from 'node:path';

const IMPORT = /^import\s*\{([^}]*)\}\s*from\s*'(\.\/[^']+)';\n/gm;
const DECLARATION = /^(?:export )?(?:async )?(?:function\*?|class|const|let) ([A-Za-z_$][\w$]*)/gm;
/** Forms of modules that the packing does not know. */
const UNKNOWN = /^(?:import\b|export (?:default|\{|\*))|\bimport\(|^(?:export )?(?:const|let) [[{]/m;

/** The modules that the entry needs, dependencies first. */
function ordered(entry) {
  const seen = new Set();
  const modules = [];
  const visit = (file) => {
    if (seen.has(file)) {
      return;
    }
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, , name] of text.matchAll(IMPORT)) {
      visit(path.join(path.dirname(file), name));
    }
    modules.push({ file, text });
  };
  visit(entry);
  return modules;
}

/** Without lines of comments, empty lines and indentation. Template texts must not span lines. */
function shortened(text) {
  return text
    .replace(/^[ \t]*\/\*\*?[\s\S]*?\*\/\n/gm, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//'))
    .join('\n');
}

/** The script of an entry module. Throws where the packing would change the meaning. */
export function bundle(entry) {
  const owners = new Map();
  const parts = ordered(entry).map(({ file, text }) => {
    for (const [, names] of text.matchAll(IMPORT)) {
      if (names.includes(' as ')) {
        throw new Error(`${file}: an import under another name`);
      }
    }
    const body = text.replace(IMPORT, '');
    if (UNKNOWN.test(body)) {
      throw new Error(`${file}: unknown form: ${body.match(UNKNOWN)[0]}`);
    }
    for (const [, name] of body.matchAll(DECLARATION)) {
      if (owners.has(name)) {
        throw new Error(`${name} is declared in ${owners.get(name)} and ${file}`);
      }
      owners.set(name, file);
    }
    return shortened(body.replace(/^export /gm, ''));
  });
  return `(() => {\n'use strict';\n${parts.join('\n')}\n})();\n`;
}
