import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { LineWriter } from '../../src/foundation/logger.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MODULE = new URL('../../src/foundation', import.meta.url).href;

/** A program that writes a line to stderr for each input line, reports that, and flushes at the end of input. */
const PROGRAM = `
  import { createInterface } from 'node:readline';
  import { systemClock } from '${MODULE}/clock.ts';
  import { LineWriter } from '${MODULE}/logger.ts';
  const writer = new LineWriter(2, { clock: systemClock });
  for await (const line of createInterface({ input: process.stdin })) {
    writer.write(line + '\\n');
    await new Promise(setImmediate);
    console.log('wrote ' + line);
  }
  writer.write('the last line\\n');
  writer.flushSync();
  console.log('flushed');
`;

function program() {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], { stdio: 'pipe' });
  return { child, stdout: text(child.stdout), ended: once(child, 'exit') };
}

test('writes lines in order, the last ones at the flush', async () => {
  const { child, stdout, ended } = program();
  let come = '';
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    come += more;
  });
  child.stdin.write('one\ntwo\n');
  // The system completes a write that is running during the flush.
  await eventually('both lines arrived', () => come === 'one\ntwo\n');
  child.stdin.end();
  assert.deepEqual(await ended, [0, null]);
  await eventually('the last one, too', () => come === 'one\ntwo\nthe last line\n');
  assert.equal(await stdout, 'wrote one\nwrote two\nflushed\n');
});

test('a reader that goes away ends nothing, and holds up no end', async () => {
  const { child, stdout, ended } = program();
  child.stdin.write('one\n');
  await once(child.stderr, 'data');
  child.stderr.destroy();
  await once(child.stderr, 'close');
  child.stdin.end('two\nthree\n');
  assert.deepEqual(await ended, [0, null]);
  assert.equal(await stdout, 'wrote one\nwrote two\nwrote three\nflushed\n');
});

test('queued lines arrive completely; lines beyond 4 MiB are dropped', async (t) => {
  const path = join(temporaryDirectory(t), 'log');
  const fd = openSync(path, 'w');
  t.after(() => closeSync(fd));
  const writer = new LineWriter(fd, { clock: systemClock });
  const line = `${'x'.repeat(1023)}\n`;
  // The first line is being written, further lines are queued.
  for (let i = 0; i < 5000; i++) writer.write(line);
  const written = await eventually('all data arrived', () => {
    const { length } = readFileSync(path);
    return length === 1024 * 4097 && length;
  });
  assert.equal(written, 1024 * 4097);
  writer.write('behind it\n');
  await eventually('the next line is there', () => readFileSync(path, 'utf8').endsWith('behind it\n'));
});

test('a descriptor that accepts nothing is harmless', async (t) => {
  const directory = join(temporaryDirectory(t), 'folder');
  mkdirSync(directory);
  const fd = openSync(directory, 'r');
  t.after(() => closeSync(fd));
  const writer = new LineWriter(fd, { clock: systemClock });
  writer.write('one\n');
  writer.flushSync();
  writer.write('two\n');
  writer.flushSync();
});
