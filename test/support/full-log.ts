/** Runs in a mount namespace with a small disk: a log is complete again after a full disk has space. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/foundation/clock.ts';
import { LineWriter } from '../../src/foundation/logger.ts';
import { eventually } from './eventually.ts';

const [disk = ''] = process.argv.slice(2);
const filler = join(disk, 'filler');
const log = join(disk, 'log');

/** Fills the disk to the last byte. */
function fill(): void {
  const file = openSync(filler, 'a');
  for (const size of [65_536, 1])
    try {
      while (writeSync(file, Buffer.alloc(size)) === size);
    } catch {}
  closeSync(file);
}

const writer = new LineWriter(openSync(log, 'a'), { clock: systemClock });
const lines = Array.from({ length: 400 }, (_, i) => `${i} ${'x'.repeat(80)}\n`);
const write = (from: number, to: number): void => {
  for (const line of lines.slice(from, to)) writer.write(line);
};
write(0, 10);
await eventually('the first lines are there', () => readFileSync(log, 'utf8') === lines.slice(0, 10).join(''));
fill();
// More than the already allocated page of the log can hold.
write(10, 300);
let size = -1;
await eventually('the page of the log is full', () => {
  const before = size;
  size = readFileSync(log).length;
  return size === before && size % 4096 === 0;
});
write(300, 350);
rmSync(filler);
write(350, 400);
await eventually('all lines are there', () => readFileSync(log, 'utf8') === lines.join(''));
assert.equal(readFileSync(log, 'utf8'), lines.join(''));
process.exit(0);
