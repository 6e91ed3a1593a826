import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Client, credentials, Metadata, Server, ServerCredentials, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { HOST, publicWorld } from '../../support/public-world.ts';

const same = (bytes: Buffer): Buffer => bytes;
const METHOD = {
  path: '/test.Echo/Say',
  requestStream: false,
  responseStream: false,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
};
const CHAT = { ...METHOD, path: '/test.Echo/Chat', requestStream: true, responseStream: true };

test('gRPC passes: calls, streams in both directions, errors and metadata', async (t) => {
  const world = await publicWorld(t, (_request, response) => response.end());
  const server = new Server();
  const seen: unknown[] = [];
  server.addService(
    { say: METHOD, chat: CHAT },
    {
      say: (call: ServerUnaryCall<Buffer, Buffer>, done: (error: object | null, value?: Buffer) => void) => {
        seen.push(call.metadata.get('svc-caller'), call.metadata.get('svc-forged'));
        if (call.request.length === 0) done({ code: status.NOT_FOUND, details: 'nothing' });
        else done(null, call.request);
      },
      chat: (call: NodeJS.ReadWriteStream) => {
        call.on('data', (chunk: Buffer) => call.write(chunk)).on('end', () => call.end());
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  t.after(() => server.forceShutdown());
  world.raw.address = { host: '127.0.0.1', port };
  const insecure = credentials.createSsl(null, null, null, { rejectUnauthorized: false });
  const client = new Client(`127.0.0.1:${world.port}`, insecure, {
    'grpc.ssl_target_name_override': HOST,
    'grpc.default_authority': HOST,
  });
  t.after(() => client.close());
  const metadata = new Metadata();
  metadata.set('svc-forged', 'x');
  const say = (text: string) =>
    new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(METHOD.path, same, same, Buffer.from(text), metadata, (error, value) =>
        error === null ? resolve(value ?? Buffer.alloc(0)) : reject(error),
      );
    });
  assert.equal((await say('hello')).toString(), 'hello');
  assert.deepEqual(seen, [['public'], []]);
  await assert.rejects(say(''), (error: { code?: number; details?: string }) => {
    assert.deepEqual([error.code, error.details], [status.NOT_FOUND, 'nothing']);
    return true;
  });
  const chat = client.makeBidiStreamRequest(CHAT.path, same, same);
  for (const text of ['one', 'two']) {
    chat.write(Buffer.from(text));
    assert.equal(String((await once(chat, 'data'))[0]), text);
  }
  chat.end();
  await once(chat, 'end');
});
