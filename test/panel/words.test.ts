import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PLACE, type Text } from '../../panel/src/lib/text.ts';
import { de } from '../../panel/src/words/de.ts';
import { en } from '../../panel/src/words/en.ts';
import { es } from '../../panel/src/words/es.ts';
import { ja } from '../../panel/src/words/ja.ts';
import { zh } from '../../panel/src/words/zh.ts';

const LANGUAGES: Readonly<Record<string, Readonly<Record<string, Text>>>> = { zh, ja, de, es };
/** Keys that are put together: their beginning. */
const MADE = /^(?:area|chat|error|new|node|path|room|show|tab|theme|update|verdict|waiting)\./;

function places(text: Text): readonly string[] {
  const form = typeof text === 'string' ? text : text.other;
  return [...form.matchAll(PLACE)].map(([, name = '']) => name).sort();
}

test('every English text is used, and none is empty but one', () => {
  const sources = globSync('panel/src/{*,{lib,parts,screens}/**/*}.{ts,tsx}')
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  for (const [key, text] of Object.entries(en)) {
    if (!MADE.test(key)) assert.ok(sources.includes(`'${key}'`) || sources.includes(`"${key}"`), key);
    if (key !== 'chat.received') assert.notEqual(text, '', key);
  }
});

test('each language has each text, no other, with the plural forms that it needs', () => {
  for (const [language, words] of Object.entries(LANGUAGES)) {
    assert.deepEqual(Object.keys(words).sort(), Object.keys(en).sort(), language);
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    for (const [key, text] of Object.entries<Text>(en)) {
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
