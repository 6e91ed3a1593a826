/** Objects: requests of strangers, and responses of holders. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { headersOf } from '../../../src/capabilities/objects/object-response.ts';
import { ObjectServer } from '../../../src/capabilities/objects/object-server.ts';
import { objectResource, RemoteObjects, verifiedBytes } from '../../../src/capabilities/objects/remote-objects.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { testAgent } from '../engine/agents.ts';
import { HTTP_WORDS, untilQuiet } from '../engine/http.ts';
import { bytesOf, refusal, violation } from '../engine/properties.ts';
import { collectResponse, IncomingOnly, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NAMES = { caller: testAgent(1).aid, called: testAgent(2).aid };
const CONTENT = Buffer.from('The bytes of an object that peers request in parts.');
const ID = createHash('sha256').update(CONTENT).digest('hex');

const requests: FuzzTarget = {
  name: 'object-requests',
  inputs: 150,
  maxBytes: 4096,
  edit: () => null,
  words: [
    ...HTTP_WORDS,
    '/cas/',
    ID,
    'Range: bytes=0-4\r\n',
    'If-None-Match: *\r\n',
    'If-Range: "x"\r\n',
    'bytes=-1',
    '-',
  ],
  prepare: async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svcd-fuzz-'));
    const file = join(directory, 'object');
    writeFileSync(file, CONTENT);
    const links = new IncomingOnly();
    const failures: unknown[] = [];
    const keep = (fields: object): void => void failures.push(fields);
    const server = new ObjectServer({
      isNamed: () => false,
      links,
      clock: systemClock,
      log: { ...silentLog, error: keep, child: () => ({ ...silentLog, error: keep }) },
      authorize: () => {},
      callers: { entered: () => {}, refused: () => {} },
      offered: { open: async () => Promise.reject(new SvcError('not_found')) },
      objects: {
        open: async (_aid, objectId) => {
          if (objectId !== ID) throw new SvcError('not_found');
          const handle = await open(file);
          return { tag: objectId, name: 'object', size: CONTENT.length, handle, isIntact: async () => true };
        },
      },
    });
    await server.start();
    return {
      seeds: bytesOf(
        `GET /cas/${ID} HTTP/1.1\r\nHost: x\r\n\r\nHEAD /cas/${ID} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET /cas/${ID} HTTP/1.1\r\nHost: x\r\nRange: bytes=4-9\r\nIf-Range: "${ID}"\r\n\r\n`,
        `GET /cas/${ID} HTTP/1.1\r\nHost: x\r\nIf-None-Match: "${ID}"\r\n\r\n`,
        `GET /cas/${'0'.repeat(64)} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET /offers/${'0'.repeat(16)} HTTP/1.1\r\nHost: x\r\n\r\nGET /offers/${'0'.repeat(16)}/hashes HTTP/1.1\r\nHost: x\r\n\r\n`,
      ),
      run: async (input) => {
        const near = links.dial('object', NAMES);
        const answer = collectResponse(near);
        writeInput(input, near);
        await untilQuiet(near, () => answer().length);
        near.destroy();
        if (failures.length > 0) throw violation('the log has an error', String(failures[0]));
        return answer().toString('latin1').split('\r\n', 1)[0] ?? '';
      },
      close: async () => {
        await server.stop();
        rmSync(directory, { recursive: true });
      },
    };
  },
};

/** Three lines: the status, the headers separated by spaces, the body. */
const answers: FuzzTarget = {
  name: 'object-answers',
  inputs: 2000,
  edit: () => null,
  words: [
    'etag',
    `"${ID}"`,
    'content-length',
    'content-range',
    'bytes ',
    '*/',
    '0-4/10',
    ' ',
    '\n',
    '206',
    '304',
    '416',
    'x',
  ],
  prepare: () => ({
    seeds: bytesOf(
      `200\netag "${ID}" content-length ${CONTENT.length}\n${CONTENT.toString()}`,
      `206\netag "${ID}" content-range bytes\u00a00-4/${CONTENT.length} content-length 5\nThe b`,
      `416\netag "${ID}" content-range bytes\u00a0*/10 content-length 0\n`,
      `304\netag "${ID}"\n`,
    ),
    run: async (input) => {
      const [status = '', head = '', ...body] = Buffer.from(input).toString('latin1').split('\n');
      const headers = head
        .replaceAll('\u00c2\u00a0', '\u00a0')
        .split(' ')
        .map((text) => text.replaceAll('\u00a0', ' '));
      const bytes = Buffer.from(body.join('\n'), 'latin1');
      const caller = { request: async () => ({ status: Number(status), headers, body: Readable.from([bytes]) }) };
      try {
        const answer = await new RemoteObjects({ caller }).read({
          local: NAMES.caller,
          holder: NAMES.called,
          resource: objectResource(ID),
          method: 'GET',
          headers: {},
        });
        const { start, length, size } = answer;
        if (![start, length, size].every(Number.isSafeInteger) || start + length > Math.max(size, 0))
          throw violation('a range outside the object', start, length, size);
        headersOf(answer, ID);
        const pieces: Uint8Array[] = [];
        for await (const piece of verifiedBytes(answer.body, ID)) pieces.push(piece);
        if (!Buffer.concat(pieces).equals(CONTENT)) throw violation('other bytes were accepted as the object', input);
        return `${answer.status} whole`;
      } catch (error) {
        return refusal(error, ['protocol_error', 'not_found', 'gone']);
      }
    },
  }),
};

export const objectTargets: readonly FuzzTarget[] = [requests, answers];
