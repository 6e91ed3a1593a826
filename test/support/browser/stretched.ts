/** A made-up language: English with accents, and two fifths longer. What is cut off in it is cut off in some real one. */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContext } from 'playwright-core';
import { PLACE, type Text } from '../../../panel/src/lib/text.ts';
import { en } from '../../../panel/src/words/en.ts';
import { enLater } from '../../../panel/src/words/en-later.ts';
import { enNode } from '../../../panel/src/words/en-node.ts';

const ENGLISH: Readonly<Record<string, Text>> = { ...en, ...enLater, ...enNode };
const ACCENTS: Readonly<Record<string, string>> = {
  a: 'åå',
  e: 'éé',
  i: 'íí',
  o: 'öö',
  u: 'üü',
  c: 'ç',
  n: 'ñ',
  y: 'ÿ',
};
/** The language whose place it takes. */
const PLACE_OF = 'de';
/** The scripts of that language; the bundler gives each a hash. */
const SCRIPT = new RegExp(`^${PLACE_OF}(?:-later|-node)?-[\\w-]{8}\\.js$`);

/** A text with its places as they were. */
function stretchedText(text: string): string {
  const draw = (part: string): string => part.replaceAll(/[aeioucny]/g, (letter) => ACCENTS[letter] ?? letter);
  return text
    .split(PLACE)
    .map((part, i) => (i % 2 === 0 ? draw(part) : `{${part}}`))
    .join('');
}

function stretchedForms(text: Text): Text {
  if (typeof text === 'string') return stretchedText(text);
  const forms = Object.entries(text).map(([form, one]) => [form, stretchedText(one)]);
  return { other: '', ...Object.fromEntries(forms) };
}

/** The script of a language with its exports, whose words are stretched. */
async function stretchedScript(file: string): Promise<string> {
  const module: Readonly<Record<string, object>> = await import(pathToFileURL(file).href);
  return Object.entries(module)
    .map(([name, words]) => {
      const made = Object.keys(words).map((key) => [key, stretchedForms(ENGLISH[key] ?? '')]);
      return `const ${name}_ = ${JSON.stringify(Object.fromEntries(made))};\nexport { ${name}_ as ${name} };`;
    })
    .join('\n');
}

/** From now on the pages of a context speak the made-up language. */
export async function stretch(context: BrowserContext): Promise<void> {
  const panel = join(import.meta.dirname, '../../../dist/panel');
  const scripts = readdirSync(panel).filter((file) => SCRIPT.test(file));
  for (const script of scripts)
    await context.route(`**/panel/${script}`, async (route) => {
      const body = await stretchedScript(join(panel, basename(script)));
      await route.fulfill({ contentType: 'text/javascript', body });
    });
  await context.addInitScript(`localStorage.setItem('svcd-language', '${PLACE_OF}')`);
}
