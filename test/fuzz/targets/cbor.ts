/** CBOR, which nearly all formats use, and JSON for the remaining formats. */
import { decodeCbor, encodeCbor, MAX_CBOR_DEPTH } from '../../../src/foundation/cbor.ts';
import { parseJson } from '../../../src/foundation/json.ts';
import { parseJsonBody } from '../../../src/surfaces/rest/json-body.ts';
import { bytesOf, decoder, reasonOf, shapeOf, violation } from '../engine/properties.ts';
import { vectorBytes } from '../engine/seeds.ts';
import type { FuzzTarget } from '../engine/target.ts';

const MAX_BYTES = 64 * 1024;

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

const cbor: FuzzTarget = {
  name: 'cbor',
  inputs: 8000,
  maxBytes: MAX_BYTES,
  prepare: () => ({
    seeds: [
      ...vectorBytes('record', 'valid.*.record_hex'),
      ...vectorBytes('group', 'entries.*.entry_hex').slice(0, 4),
      encodeCbor({ a: [1, -1, 1.5, null, true, 'ü', '\ufeffx', 2 ** 40, { b: [[], {}] }] }),
    ],
    run: (input) => {
      let value: unknown;
      try {
        value = decodeCbor(input, MAX_BYTES);
      } catch (error) {
        if (error instanceof RangeError) return reasonOf(error);
        throw error;
      }
      if (depthOf(value) > MAX_CBOR_DEPTH) throw violation('deeper than the limit', input);
      return shapeOf(value);
    },
  }),
};

const json = decoder({
  name: 'json',
  inputs: 5000,
  edit: () => null,
  words: [
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"',
    '\\',
    '\\u005f_proto__',
    '"__proto__":',
    '1e999',
    '-0',
    '\\ud800',
    '\u0000',
  ],
  seeds: () => bytesOf('{"a":[1,2.5,-3e4,true,false,null,"x\\n\\u00e4"],"b":{"c":{}}}', '[[[[["deep"]]]]]', '"text"'),
  decode: (bytes) => ({ value: parseJsonBody(bytes) }),
  refuses: ['invalid_json'],
  check: ({ value }) => {
    if (value !== undefined && depthOf(value) > 64) throw violation('deeper than the limit', value);
    if (Object.keys(Object.assign({}, value)).length !== Object.keys(Object(value)).length && typeof value !== 'string')
      throw violation('a copy has other members', value);
    if (value !== undefined) parseJson(JSON.stringify(value));
  },
});

export const basicTargets: readonly FuzzTarget[] = [cbor, json];
