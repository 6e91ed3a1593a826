/** What a package registry says of releases, and what announces a node on its LAN. */
import { EventEmitter } from 'node:events';
import multicastDns from 'multicast-dns';
import { Compile } from 'typebox/compile';
import { RegistryKeys, signatureProblem } from '../../../src/capabilities/update/signature.ts';
import { readJson } from '../../../src/foundation/json.ts';
import { decodeAnnouncement, encodeAnnouncement, SERVICE } from '../../../src/network/reach/lan-announcement.ts';
import { idle } from '../../support/idle.ts';
import { SigningKey } from '../../support/npm-registry.ts';
import { broken, bytesOf, shapeOf, textOf } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const RELEASE = { name: 'svcd', version: '1.1.0', integrity: 'sha512-x', publishedAt: 0 };

/** The list of keys, and behind a line break the signatures of a release. */
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
        // The signature is of another version.
        if (problem === null) throw broken('a release was forged', input);
        return `${problem} ${shapeOf(value)}`;
      },
    };
  },
};

const TAG = new Uint8Array(8).fill(1);
const KEY = new Uint8Array(32).fill(2);

/** Packets of multicast DNS, taken apart by the library and looked at by us. */
const lan: FuzzTarget = {
  name: 'lan-packets',
  inputs: 2000,
  maxBytes: 1500,
  edit: () => null,
  words: ['_svcd', '_udp', 'local', 'v=1', 'net=', 'key=', '\u00c0\u000c'],
  prepare: async () => {
    const sent: Uint8Array[] = [];
    const send = (packet: Uint8Array): void => void sent.push(Uint8Array.from(packet));
    const socket = Object.assign(new EventEmitter(), { send });
    const mdns = multicastDns({ socket, bind: false, multicast: false });
    mdns.respond(encodeAnnouncement({ network: TAG, nodeKey: KEY, port: 4121 }));
    mdns.query([{ name: SERVICE, type: 'PTR' }]);
    await idle();
    let said = '';
    for (const event of ['query', 'response'] as const)
      mdns.on(event, (packet) => {
        const found = decodeAnnouncement(packet);
        if (found !== null && (found.port < 1 || found.nodeKey.length !== KEY.length))
          throw broken('an announcement out of bounds', found);
        said = `${event} ${found === null} ${shapeOf(packet)}`;
      });
    mdns.on('warning', (error) => {
      said = error.message.replaceAll(/\d+/g, '0');
    });
    if (sent.length < 2) throw broken('the library sent nothing');
    return {
      seeds: sent,
      run: (input) => {
        said = '';
        socket.emit('message', Buffer.from(input), { address: '192.0.2.7', port: 5353 });
        return said;
      },
    };
  },
};

export const updateTargets: readonly FuzzTarget[] = [keys, lan];
