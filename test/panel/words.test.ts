import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { PLACE, type Text } from '../../panel/src/lib/text.ts';
import { de } from '../../panel/src/words/de.ts';
import { deDoctor } from '../../panel/src/words/de-doctor.ts';
import { deLater } from '../../panel/src/words/de-later.ts';
import { deNode } from '../../panel/src/words/de-node.ts';
import { deSettings } from '../../panel/src/words/de-settings.ts';
import { en } from '../../panel/src/words/en.ts';
import { enLater } from '../../panel/src/words/en-later.ts';
import { enNode } from '../../panel/src/words/en-node.ts';
import { es } from '../../panel/src/words/es.ts';
import { esDoctor } from '../../panel/src/words/es-doctor.ts';
import { esLater } from '../../panel/src/words/es-later.ts';
import { esNode } from '../../panel/src/words/es-node.ts';
import { esSettings } from '../../panel/src/words/es-settings.ts';
import { ja } from '../../panel/src/words/ja.ts';
import { jaDoctor } from '../../panel/src/words/ja-doctor.ts';
import { jaLater } from '../../panel/src/words/ja-later.ts';
import { jaNode } from '../../panel/src/words/ja-node.ts';
import { jaSettings } from '../../panel/src/words/ja-settings.ts';
import { zh } from '../../panel/src/words/zh.ts';
import { zhDoctor } from '../../panel/src/words/zh-doctor.ts';
import { zhLater } from '../../panel/src/words/zh-later.ts';
import { zhNode } from '../../panel/src/words/zh-node.ts';
import { zhSettings } from '../../panel/src/words/zh-settings.ts';
import { CONFIG_KEYS } from '../../src/foundation/config/schema.ts';
import { FINDING_CODES } from '../../src/foundation/domain/findings.ts';

const LANGUAGES: Readonly<Record<string, Readonly<Record<string, Text>>>> = {
  zh: { ...zh, ...zhLater, ...zhNode },
  ja: { ...ja, ...jaLater, ...jaNode },
  de: { ...de, ...deLater, ...deNode },
  es: { ...es, ...esLater, ...esNode },
};
/** Translations of the texts of the daemon. */
const DAEMON: Readonly<Record<string, Readonly<Record<string, Text>>>> = {
  zh: { ...zhSettings, ...zhDoctor },
  ja: { ...jaSettings, ...jaDoctor },
  de: { ...deSettings, ...deDoctor },
  es: { ...esSettings, ...esDoctor },
};
const ENGLISH: Readonly<Record<string, Text>> = { ...en, ...enLater, ...enNode };
/** Prefixes of keys that the code builds at run time. */
const MADE =
  /^(?:area|chat|doctor|error|event|exit|happened|new|node|path|room|show|tab|theme|update|verdict|waiting)\./;

function places(text: Text): readonly string[] {
  const form = typeof text === 'string' ? text : text.other;
  return [...form.matchAll(PLACE)].map(([, name = '']) => name).sort();
}

test('every English text is used, and only one is empty', () => {
  const sources = globSync('panel/src/{*,{lib,parts,screens}/**/*}.{ts,tsx}')
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  for (const [key, text] of Object.entries(ENGLISH)) {
    if (!MADE.test(key)) assert.ok(sources.includes(`'${key}'`) || sources.includes(`"${key}"`), key);
    if (key !== 'chat.received') assert.notEqual(text, '', key);
  }
});

/** A static import that is not a type import. */
const IMPORT = /^import (?!type )[^;]*?from '(\.[^']+)';/gm;

/** The source files of the first view. */
function firstView(): ReadonlySet<string> {
  const seen = new Set(['panel/src/main.tsx']);
  for (const file of seen)
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const next = join(dirname(file), path);
      if (next.startsWith('panel/')) seen.add(next);
    }
  return seen;
}

test('the first view uses no text that loads later, and no text is in both parts', () => {
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

test('only the pages of the node use the texts that load with them', () => {
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

test('each language has exactly the English texts, with the plural forms that it needs', () => {
  for (const [language, words] of Object.entries(LANGUAGES)) {
    assert.deepEqual(Object.keys(words).sort(), Object.keys(ENGLISH).sort(), language);
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    for (const [key, text] of Object.entries(ENGLISH)) {
      const own = words[key] ?? '';
      assert.equal(typeof own, typeof text, `${language} ${key}`);
      if (typeof own !== 'string')
        for (const form of forms) if (form !== 'many') assert.ok(form in own, `${language} ${key} ${form}`);
      // English names the agent in its singular form only. Other languages may omit the name.
      const known = new Set([...places(text), 'n', 'agent']);
      for (const place of places(own)) assert.ok(known.has(place), `${language} ${key} {${place}}`);
      if (typeof text === 'string') assert.deepEqual(places(own), places(text), `${language} ${key}`);
    }
  }
});

test('each language translates every setting and finding, with the same values and its plural forms', () => {
  const known = [...CONFIG_KEYS.map((key) => `setting.${key}`), ...FINDING_CODES.map((code) => `finding.${code}`)];
  const [model = {}] = Object.values(DAEMON);
  for (const [language, words] of Object.entries(DAEMON)) {
    assert.deepEqual(
      Object.keys(words)
        .filter((key) => !key.startsWith('hint.'))
        .sort(),
      known.toSorted(),
      language,
    );
    assert.deepEqual(Object.keys(words).sort(), Object.keys(model).sort(), language);
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    for (const [key, text] of Object.entries(words)) {
      assert.deepEqual(places(text), places(model[key] ?? ''), `${language} ${key}`);
      if (typeof text !== 'string')
        for (const form of forms) if (form !== 'many') assert.ok(form in text, `${language} ${key} ${form}`);
    }
  }
});
