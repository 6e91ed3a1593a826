/** Small programs that replace svcd for supervisor tests: they report that they are ready, and respond or not. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Behavior after the start. `GET /switch/<version>` requests that version, `GET /restart` a restart. */
export type Behaviour = 'good' | 'ends' | 'hangs' | 'fails' | 'ends-later' | 'other-version' | 'ruins-database';

/** Writes the program of a version into a folder. @returns its path */
export function writeFakeDaemon(root: string, version: string, behaviour: Behaviour): string {
  const file = join(root, 'bin', 'svcd');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(join(root, 'bin', 'package.json'), '{"type":"module"}');
  writeFileSync(
    file,
    `import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
const behaviour = ${JSON.stringify(behaviour)};
const dataDir = process.argv[process.argv.indexOf('--data-dir') + 1];
if (behaviour === 'ruins-database')
  new DatabaseSync(dataDir + '/svcd.db').exec('PRAGMA user_version = 9; DELETE FROM things');
if (behaviour === 'ends' || behaviour === 'ruins-database') process.exit(1);
process.on('SIGTERM', () => process.exit(0));
const server = createServer((request, response) => {
  const [, what, version] = request.url.split('/');
  if (what === 'switch') process.send({ type: 'switch', version });
  if (what === 'restart') process.send({ type: 'restart' });
  response.writeHead(what === 'health' && behaviour === 'fails' ? 500 : 200).end('{}');
  if (what === 'health' && behaviour === 'ends-later') process.exit(1);
});
if (behaviour === 'hangs') setInterval(() => {}, 1000);
else server.listen(0, '127.0.0.1', () => {
  const api_addr = '127.0.0.1:' + server.address().port;
  const version = behaviour === 'other-version' ? '0.0.1' : ${JSON.stringify(version)};
  const info = { pid: process.pid, api_addr, started_at: '', version, proof_key: '' };
  writeFileSync(dataDir + '/daemon.json', JSON.stringify(info));
  process.send({ type: 'ready', api_addr });
});
`,
  );
  return file;
}
