/** A test language: English with accents, 40 % longer. A text that is cut off in it may be cut off in a real language. */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContext } from 'playwright-core';
import { PLACE, type Text } from '../../../panel/src/lib/text.ts';
import { en } from '../../../panel/src/words/en.ts';
import { enAgent } from '../../../panel/src/words/en-agent.ts';
import { enNetwork } from '../../../panel/src/words/en-network.ts';
import { enNode } from '../../../panel/src/words/en-node.ts';
import { enTalk } from '../../../panel/src/words/en-talk.ts';

const ENGLISH: Readonly<Record<string, Text>> = { ...en, ...enAgent, ...enNode, ...enTalk, ...enNetwork };
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
/** The language that it replaces. */
const PLACE_OF = 'de';
/** The scripts of that language, whose names contain a hash. */
const SCRIPT = new RegExp(`^${PLACE_OF}(?:-agent|-node|-talk|-network|-settings|-doctor)?-[\\w-]{8}\\.js$`);

/** A text with accents. The places for values do not change. */
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

/** The script of a language with stretched texts. */
async function stretchedScript(file: string): Promise<string> {
  const module: Readonly<Record<string, Readonly<Record<string, Text>>>> = await import(pathToFileURL(file).href);
  return Object.entries(module)
    .map(([name, words]) => {
      // The panel has no English for the texts of the daemon.
      const made = Object.entries(words).map(([key, own]) => [key, stretchedForms(ENGLISH[key] ?? own)]);
      return `const ${name}_ = ${JSON.stringify(Object.fromEntries(made))};\nexport { ${name}_ as ${name} };`;
    })
    .join('\n');
}

/** Switches the pages of a browser context to the test language. */
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
