/** Release data from a package registry, and announcements of nodes on the LAN. */
import { Compile } from 'typebox/compile';
import { RegistryKeys, signatureProblem } from '../../../src/capabilities/update/signature.ts';
import { readJson } from '../../../src/foundation/json.ts';
import {
  decodeAnnouncement,
  decodePacket,
  encodeAnnouncement,
  encodeQuestion,
  isServiceQuery,
} from '../../../src/network/reachability/mdns-messages.ts';
import { SigningKey } from '../../support/npm-registry.ts';
import { bytesOf, decoder, shapeOf, textOf, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const RELEASE = { name: 'svcd', version: '1.1.0', integrity: 'sha512-x', publishedAt: 0 };

/** The list of keys, a line break, and the signatures of a release. */
const keys: FuzzTarget = {
  name: 'release-signatures',
  inputs: 800,
  edit: () => null,
  words: [
    '"keyid":"',
    '"keytype":"ecdsa-sha2-nistp256"',
    '"expires":"',
    'null',
    '"key":"',
    '"sig":"',
    '{',
    '}',
    '[',
    ']',
    'MFk',
    '=',
  ],
  prepare: () => {
    const key = new SigningKey();
    const check = Compile(RegistryKeys);
    const signature = key.sign('svcd@1.0.0:sha512-x');
    return {
      seeds: bytesOf(`${JSON.stringify({ keys: [key.view()] })}\n${signature.sig}`),
      run: (input) => {
        const [listed = '', sig = ''] = textOf(input).split('\n', 2);
        const value = readJson(listed);
        if (!check.Check(value)) return 'no list of keys';
        const signatures = [{ keyid: key.keyid, sig }];
        const problem = signatureProblem({ ...RELEASE, signatures }, value.keys);
        // The signature is for another version.
        if (problem === null) throw violation('a release was forged', input);
        return `${problem} ${shapeOf(value)}`;
      },
    };
  },
};

const TAG = new Uint8Array(8).fill(1);
const KEY = new Uint8Array(32).fill(2);

/** Packets of multicast DNS, and the announcements in them. */
const lan = decoder({
  name: 'lan-packets',
  inputs: 4000,
  maxBytes: 1500,
  edit: () => null,
  words: ['_svcd', '_udp', 'local', 'v=1', 'net=', 'key=', '\u00c0\u000c', '\u0005_svcd\u0004_udp\u0005local\u0000'],
  seeds: () => [encodeAnnouncement({ network: TAG, nodeKey: KEY, port: 4121 }), encodeQuestion()],
  decode: decodePacket,
  check: (packet) => {
    const { questions, records } = packet;
    if (questions.length + records.length > 32) throw violation('more records than allowed');
    if ([...questions, ...records].some(({ name }) => name.length > 255)) throw violation('a name without an end');
    const found = decodeAnnouncement(packet);
    if (found !== null && (found.port < 1 || found.port > 0xffff || found.nodeKey.length !== KEY.length))
      throw violation('an announcement over its limits', found);
    return `${found === null ? 'none' : 'found'} ${isServiceQuery(packet)}`;
  },
});

export const updateTargets: readonly FuzzTarget[] = [keys, lan];
