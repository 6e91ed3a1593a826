import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { PLACE, type Text } from '../../panel/src/lib/text.ts';
import { de } from '../../panel/src/words/de.ts';
import { deAgent } from '../../panel/src/words/de-agent.ts';
import { deDoctor } from '../../panel/src/words/de-doctor.ts';
import { deNetwork } from '../../panel/src/words/de-network.ts';
import { deNode } from '../../panel/src/words/de-node.ts';
import { deSettings } from '../../panel/src/words/de-settings.ts';
import { deTalk } from '../../panel/src/words/de-talk.ts';
import { en } from '../../panel/src/words/en.ts';
import { enAgent } from '../../panel/src/words/en-agent.ts';
import { enNetwork } from '../../panel/src/words/en-network.ts';
import { enNode } from '../../panel/src/words/en-node.ts';
import { enTalk } from '../../panel/src/words/en-talk.ts';
import { es } from '../../panel/src/words/es.ts';
import { esAgent } from '../../panel/src/words/es-agent.ts';
import { esDoctor } from '../../panel/src/words/es-doctor.ts';
import { esNetwork } from '../../panel/src/words/es-network.ts';
import { esNode } from '../../panel/src/words/es-node.ts';
import { esSettings } from '../../panel/src/words/es-settings.ts';
import { esTalk } from '../../panel/src/words/es-talk.ts';
import { ja } from '../../panel/src/words/ja.ts';
import { jaAgent } from '../../panel/src/words/ja-agent.ts';
import { jaDoctor } from '../../panel/src/words/ja-doctor.ts';
import { jaNetwork } from '../../panel/src/words/ja-network.ts';
import { jaNode } from '../../panel/src/words/ja-node.ts';
import { jaSettings } from '../../panel/src/words/ja-settings.ts';
import { jaTalk } from '../../panel/src/words/ja-talk.ts';
import { zh } from '../../panel/src/words/zh.ts';
import { zhAgent } from '../../panel/src/words/zh-agent.ts';
import { zhDoctor } from '../../panel/src/words/zh-doctor.ts';
import { zhNetwork } from '../../panel/src/words/zh-network.ts';
import { zhNode } from '../../panel/src/words/zh-node.ts';
import { zhSettings } from '../../panel/src/words/zh-settings.ts';
import { zhTalk } from '../../panel/src/words/zh-talk.ts';
import { CONFIG_KEYS } from '../../src/foundation/config/schema.ts';
import { FINDING_CODES } from '../../src/foundation/domain/findings.ts';

const LANGUAGES: Readonly<Record<string, Readonly<Record<string, Text>>>> = {
  zh: { ...zh, ...zhAgent, ...zhNode, ...zhTalk, ...zhNetwork },
  ja: { ...ja, ...jaAgent, ...jaNode, ...jaTalk, ...jaNetwork },
  de: { ...de, ...deAgent, ...deNode, ...deTalk, ...deNetwork },
  es: { ...es, ...esAgent, ...esNode, ...esTalk, ...esNetwork },
};
/** Translations of the texts of the daemon. */
const DAEMON: Readonly<Record<string, Readonly<Record<string, Text>>>> = {
  zh: { ...zhSettings, ...zhDoctor },
  ja: { ...jaSettings, ...jaDoctor },
  de: { ...deSettings, ...deDoctor },
  es: { ...esSettings, ...esDoctor },
};
const ENGLISH: Readonly<Record<string, Text>> = { ...en, ...enAgent, ...enNode, ...enTalk, ...enNetwork };
/** Prefixes of keys that the code builds at run time. */
const MADE =
  /^(?:area|chat|contact|delivery|doctor|error|event|exit|happened|hook|hub|hubpart|hubstate|mapping|natmap|new|node|notdirect|path|reach|groups|show|source|tab|theme|update|verdict|waiting)\./;

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

/** Texts that load with some screens, and the files that may use them. */
const LOADED: readonly (readonly [Readonly<Record<string, Text>>, RegExp])[] = [
  [enAgent, /^panel\/src\/(?:parts|screens|lib)\//],
  [enNode, /^panel\/src\/screens\/node[./]/],
  [enTalk, /^panel\/src\/screens\/(?:messages|files)[./]/],
  [
    enNetwork,
    /^panel\/src\/screens\/(?:discover|network|people|peer|request-console|node\/contacts|agent\/(?:hooks|hub))[./]/,
  ],
];

test('a file uses only texts that are loaded before it, and no text is in two groups', () => {
  const first = firstView();
  assert.ok(first.has('panel/src/screens/home.tsx') && !first.has('panel/src/screens/node.tsx'));
  const files = globSync('panel/src/{*,{lib,parts,screens}/**/*}.{ts,tsx}');
  for (const file of files) {
    const source = readFileSync(file, 'utf8');
    for (const [words, users] of LOADED)
      if (first.has(file) || !users.test(file))
        for (const key of Object.keys(words))
          assert.ok(!source.includes(`'${key}'`) && !source.includes(`"${key}"`), `${file} ${key}`);
  }
  const keys = [en, ...LOADED.map(([words]) => words)].flatMap((words) => Object.keys(words));
  assert.equal(new Set(keys).size, keys.length);
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
