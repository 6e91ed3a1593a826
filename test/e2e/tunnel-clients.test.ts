import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { needs } from '../support/needs.ts';
import { TestNetwork } from '../support/network.ts';
import { postgresServer, runOk, sshServer } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Binds a service to an agent on one daemon, opens a tunnel to it on another, and returns the tunnel's port. */
async function tunnelTo(network: TestNetwork, servicePort: number): Promise<string> {
  const [near, far] = [network.at(0), network.at(1)];
  const aid = await far.newAgent(`127.0.0.1:${servicePort}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`, {});
  return listen.split(':')[1] ?? '';
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

test('ssh runs a command and scp copies a file through a tunnel', {
  skip: needs('ssh', 'scp', 'ssh-keygen', 'sshd'),
}, async (t) => {
  await using network = await TestNetwork.start(2);
  const directory = temporaryDirectory(t);
  const { service, identity, user } = await sshServer(directory);
  await using _ = service;
  const port = await tunnelTo(network, service.port);
  // No settings or keys of the user who runs the tests.
  const options = [
    '-F',
    'none',
    '-i',
    identity,
    '-o',
    'IdentitiesOnly=yes',
    '-o',
    'StrictHostKeyChecking=no',
    '-o',
    'UserKnownHostsFile=/dev/null',
    '-o',
    'LogLevel=ERROR',
    '-o',
    'BatchMode=yes',
  ];
  assert.equal(
    await runOk('ssh', ['-p', port, ...options, `${user}@127.0.0.1`, 'echo through the tunnel; cat'], {
      input: 'and back',
    }),
    'through the tunnel\nand back',
  );
  const file = join(directory, 'file');
  const copy = join(directory, 'copy');
  const content = randomBytes(8 * 1024 * 1024);
  writeFileSync(file, content);
  await runOk('scp', ['-q', '-P', port, ...options, file, `${user}@127.0.0.1:${copy}`]);
  assert.equal(sha256(readFileSync(copy)), sha256(content));
  const back = join(directory, 'back');
  await runOk('scp', ['-q', '-P', port, ...options, `${user}@127.0.0.1:${copy}`, back]);
  assert.equal(sha256(readFileSync(back)), sha256(content));
});

test('psql works through a tunnel: transactions, bulk in, bulk out', { skip: needs('psql') }, async (t) => {
  await using network = await TestNetwork.start(2);
  await using service = await postgresServer(temporaryDirectory(t));
  const port = await tunnelTo(network, service.port);
  const psql = (sql: string): Promise<string> =>
    runOk('psql', [
      '-X',
      '-h',
      '127.0.0.1',
      '-p',
      port,
      '-U',
      'tester',
      '-d',
      'postgres',
      '-At',
      '-v',
      'ON_ERROR_STOP=1',
      '-c',
      sql,
    ]);
  await psql('CREATE TABLE t (id int PRIMARY KEY, text text)');
  await psql("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i");
  assert.equal((await psql('SELECT count(*), sum(length(text)) FROM t')).trim(), '20000|20000000');
  assert.equal((await psql('COPY (SELECT * FROM t ORDER BY id) TO STDOUT')).length, 20_128_894);
});

test('web clients go through a tunnel', { skip: needs('curl') && needs('wrk') }, async (t) => {
  await using network = await TestNetwork.start(2);
  const directory = temporaryDirectory(t);
  const file = join(directory, 'file');
  const content = randomBytes(16 * 1024 * 1024);
  writeFileSync(file, content);
  const server = createServer((request, response) => {
    if (request.method === 'GET' && request.url === '/file') return void createReadStream(file).pipe(response);
    const hash = createHash('sha256');
    request.on('data', (chunk: Buffer) => hash.update(chunk));
    return request.on('end', () => response.end(hash.digest('hex')));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const port = await tunnelTo(network, address.port);
  const url = `http://127.0.0.1:${port}`;
  const curl = ['-q', '--noproxy', '*', '-sS', '--fail'];
  await t.test('curl uploads and downloads', { skip: needs('curl') }, async () => {
    assert.equal(await runOk('curl', [...curl, '-T', file, `${url}/up`]), sha256(content));
    const copy = join(directory, 'copy');
    await runOk('curl', [...curl, '-o', copy, `${url}/file`]);
    assert.equal(sha256(readFileSync(copy)), sha256(content));
  });
  await t.test('wrk sends load', { skip: needs('wrk') }, async () => {
    const report = await runOk('wrk', ['-t', '1', '-c', '50', '-d', '3s', '--timeout', '60s', `${url}/small`]);
    assert.doesNotMatch(report, /Socket errors|Non-2xx/, report);
    assert.match(report, /[1-9]\d* requests in/);
  });
  server.closeAllConnections();
  server.close();
});
