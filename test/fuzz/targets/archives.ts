/** Files that a user received: backups, exports, agent documents, and configuration. */
import { isDeepStrictEqual } from 'node:util';
import { importTunnels } from '../../../src/capabilities/tunnels/moving.ts';
import { parseConfig } from '../../../src/foundation/config/file.ts';
import { setKeys } from '../../../src/foundation/config/toml-edit.ts';
import { isArchived, readArchive, writeArchive } from '../../../src/foundation/moving/node-archive.ts';
import { seal, unseal } from '../../../src/foundation/moving/sealed-file.ts';
import { cheapPassphrase } from '../../support/cheap-scrypt.ts';
import { testAgent } from '../engine/agents.ts';
import { bytesOf, decoder, refusal, shapeOf, textOf, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const [ALICE, BOB, CAROL] = [testAgent(1), testAgent(2), testAgent(3)];
const PASSWORD = cheapPassphrase('correct horse');

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return new Uint8Array(Buffer.concat(all));
}

const sealed: FuzzTarget = {
  name: 'sealed-file',
  inputs: 500,
  edit: () => null,
  words: ['"n":', '131072', '1e9', '"r":', '"salt":"', '"kind":"node"', '\n', '{', '}', '__proto__'],
  prepare: async () => {
    const content = new TextEncoder().encode('{"svcd_agent":1}');
    const file = await collect(seal('agent', PASSWORD, [content]));
    return {
      seeds: [file],
      run: async (input) => {
        try {
          const plain = await collect(unseal('agent', PASSWORD, splitInput(input)));
          if (!Buffer.from(plain).equals(content)) throw violation('a sealed file was forged', input);
          return 'opened';
        } catch (error) {
          return refusal(error, ['wrong_password', 'bad_file']);
        }
      },
    };
  },
};

const archive: FuzzTarget = {
  name: 'node-archive',
  inputs: 1500,
  edit: () => null,
  words: [
    'svcd.db',
    'keys/',
    '../',
    '/etc/passwd',
    'config.toml',
    '"size":',
    '"name":',
    '-1',
    '1e20',
    '"files":[',
    '__proto__',
    '\n',
  ],
  prepare: async () => {
    const files = ['svcd.db', 'config.toml', 'keys/node.key'].map((name) => ({
      name,
      content: new TextEncoder().encode(name),
    }));
    const whole = await collect(
      writeArchive(files, { svcdVersion: '1.0.0', createdAt: '2026-01-01T00:00:00Z', agents: 1 }),
    );
    return {
      seeds: [whole],
      run: async (input) => {
        let written = 0;
        let open = 0;
        let outcome: string;
        try {
          const manifest = await readArchive(splitInput(input), ({ name }) => {
            open++;
            if (!isArchived(name) || name.includes('..')) throw violation('a file outside the directory', name);
            return {
              write: (piece) => {
                written += piece.length;
              },
              close: () => {
                open--;
              },
            };
          });
          outcome = shapeOf(manifest);
        } catch (error) {
          outcome = `${Math.ceil(Math.log2(written + 1))} ${refusal(error, ['bad_file'])}`;
        }
        if (written > input.length) throw violation('the output is longer than the input', input);
        if (open !== 0) throw violation('a file was left open', input);
        return outcome;
      },
    };
  },
};

const config = decoder({
  name: 'config',
  inputs: 1500,
  edit: () => null,
  words: [
    '[',
    ']',
    '[[',
    '=',
    '"',
    '"""',
    "'",
    '#',
    '\n',
    '\r\n',
    '.',
    '{',
    '}',
    '__proto__',
    'constructor',
    'api_token',
    '\u0000',
    '1979-05-27',
  ],
  seeds: () =>
    bytesOf(
      '# mine\nlisten_addr = "0.0.0.0:4121"\nbootstrap = ["192.0.2.1:4121"]\nmdns = true\n',
      'api_addr = "127.0.0.1:2121" # here\n\n[[turn_servers]]\nurl = "turn:a.example:3478"\ncredential_type = "static"\nusername = "u"\ncredential = "c"\n',
      'network = \'x\'\nlog_level = "info"\nmin_observed_peers = 2\n',
    ),
  decode: (bytes) => {
    const text = textOf(bytes);
    const values = parseConfig(text, 'config.toml');
    // The editor changes any valid file without losing the other settings.
    const edited = parseConfig(setKeys(text, new Map([['log_level', 'debug']])), 'config.toml');
    if (!isDeepStrictEqual({ ...edited, log_level: 0 }, { ...values, log_level: 0 }))
      throw violation('an edit of one key changed another', text);
    if (edited.log_level !== 'debug') throw violation('an edit had no effect', text);
    return values;
  },
  refuses: ['config_invalid'],
});

/** One part of an agent document, if its schema accepts it. */
const tunnels = decoder({
  name: 'document-tunnels',
  inputs: 1500,
  edit: () => null,
  words: ['"', '[', ']', '{', '}', 'aid1', '4242', '-1', '__proto__'],
  seeds: () => bytesOf(`${BOB.aid} 4242 ${CAROL.aid} 4243`),
  decode: (bytes) => {
    const words = textOf(bytes).split(' ');
    const part = words.flatMap((remote_aid, i) =>
      i % 2 === 0
        ? [{ remote_aid, local_port: Number(words[i + 1]) || 1, idle_timeout_sec: 0, disable_relay: false }]
        : [],
    );
    const saved: unknown[] = [];
    const memory = { list: () => [], save: (tunnel: unknown) => void saved.push(tunnel), delete: () => {} };
    importTunnels(memory, ALICE.aid, part)();
    return { saved: saved.length };
  },
  refuses: ['bad_file'],
});

export const archiveTargets: readonly FuzzTarget[] = [sealed, archive, config, tunnels];
