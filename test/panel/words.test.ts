import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { PLACE, type Text } from '../../panel/src/lib/text.ts';
import { de } from '../../panel/src/words/de.ts';
import { deLater } from '../../panel/src/words/de-later.ts';
import { deNode } from '../../panel/src/words/de-node.ts';
import { en } from '../../panel/src/words/en.ts';
import { enLater } from '../../panel/src/words/en-later.ts';
import { enNode } from '../../panel/src/words/en-node.ts';
import { es } from '../../panel/src/words/es.ts';
import { esLater } from '../../panel/src/words/es-later.ts';
import { esNode } from '../../panel/src/words/es-node.ts';
import { ja } from '../../panel/src/words/ja.ts';
import { jaLater } from '../../panel/src/words/ja-later.ts';
import { jaNode } from '../../panel/src/words/ja-node.ts';
import { zh } from '../../panel/src/words/zh.ts';
import { zhLater } from '../../panel/src/words/zh-later.ts';
import { zhNode } from '../../panel/src/words/zh-node.ts';

const LANGUAGES: Readonly<Record<string, Readonly<Record<string, Text>>>> = {
  zh: { ...zh, ...zhLater, ...zhNode },
  ja: { ...ja, ...jaLater, ...jaNode },
  de: { ...de, ...deLater, ...deNode },
  es: { ...es, ...esLater, ...esNode },
};
const ENGLISH: Readonly<Record<string, Text>> = { ...en, ...enLater, ...enNode };
/** Keys that are put together: their beginning. */
const MADE = /^(?:area|chat|doctor|error|event|happened|new|node|path|room|show|tab|theme|update|verdict|waiting)\./;

function places(text: Text): readonly string[] {
  const form = typeof text === 'string' ? text : text.other;
  return [...form.matchAll(PLACE)].map(([, name = '']) => name).sort();
}

test('every English text is used, and none is empty but one', () => {
  const sources = globSync('panel/src/{*,{lib,parts,screens}/**/*}.{ts,tsx}')
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  for (const [key, text] of Object.entries(ENGLISH)) {
    if (!MADE.test(key)) assert.ok(sources.includes(`'${key}'`) || sources.includes(`"${key}"`), key);
    if (key !== 'chat.received') assert.notEqual(text, '', key);
  }
});

/** What a source imports at once, its types left out. */
const IMPORT = /^import (?!type )[^;]*?from '(\.[^']+)';/gm;

/** The sources without which there is no first view. */
function firstView(): ReadonlySet<string> {
  const seen = new Set(['panel/src/main.tsx']);
  for (const file of seen)
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const next = join(dirname(file), path);
      if (next.startsWith('panel/')) seen.add(next);
    }
  return seen;
}

test('the first view says nothing that is loaded later, and no text is in both parts', () => {
  const files = firstView();
  assert.ok(files.has('panel/src/screens/home.tsx') && !files.has('panel/src/screens/node.tsx'));
  for (const file of files) {
    if (file.startsWith('panel/src/words/')) continue;
    const source = readFileSync(file, 'utf8');
    for (const key of Object.keys(enLater))
      assert.ok(!source.includes(`'${key}'`) && !source.includes(`"${key}"`), `${file} ${key}`);
  }
  for (const key of Object.keys(enLater)) assert.ok(!Object.hasOwn(en, key), key);
});

test('nothing but the pages of the node says what is loaded with them', () => {
  const files = globSync('panel/src/{*,{lib,parts,screens}/**/*}.{ts,tsx}').filter(
    (file) => !/^panel\/src\/screens\/node[./]/.test(file),
  );
  assert.ok(files.includes('panel/src/app.tsx'));
  for (const file of files) {
    const source = readFileSync(file, 'utf8');
    for (const key of Object.keys(enNode))
      assert.ok(!source.includes(`'${key}'`) && !source.includes(`"${key}"`), `${file} ${key}`);
  }
  for (const key of Object.keys(enNode)) assert.ok(!Object.hasOwn(en, key) && !Object.hasOwn(enLater, key), key);
});

test('each language has each text, no other, with the plural forms that it needs', () => {
  for (const [language, words] of Object.entries(LANGUAGES)) {
    assert.deepEqual(Object.keys(words).sort(), Object.keys(ENGLISH).sort(), language);
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    for (const [key, text] of Object.entries(ENGLISH)) {
      const own = words[key] ?? '';
      assert.equal(typeof own, typeof text, `${language} ${key}`);
      if (typeof own !== 'string')
        for (const form of forms) if (form !== 'many') assert.ok(form in own, `${language} ${key} ${form}`);
      // A plural may do without the name of the one, which English says in its form for one only.
      const known = new Set([...places(text), 'n', 'agent']);
      for (const place of places(own)) assert.ok(known.has(place), `${language} ${key} {${place}}`);
      if (typeof text === 'string') assert.deepEqual(places(own), places(text), `${language} ${key}`);
    }
  }
});
