import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { ProgressLine, progressText, TransferSpeed } from '../../../src/surfaces/cli/file-transfer.ts';

const MIB = 1024 ** 2;

test('measures recent speed, unknown at first', () => {
  const speed = new TransferSpeed();
  assert.equal(speed.perSecond(), null);
  speed.note(0, 0);
  speed.note(100, 400);
  assert.equal(speed.perSecond(), null);
  speed.note(1000, 1000);
  assert.equal(speed.perSecond(), 1000);
  // Old progress does not count.
  for (let second = 2; second <= 20; second++) speed.note(1000 + 10 * second, 1000 * second);
  assert.equal(speed.perSecond(), 10);
  speed.note(5, 21_000);
  assert.equal(speed.perSecond(), null);
});

test('shows progress, speed and remaining time', () => {
  assert.equal(
    progressText('plan.pdf', 12 * MIB, 27 * MIB, 4 * MIB),
    'plan.pdf  44 %  12.0 MiB of 27.0 MiB  4.0 MiB/s  4 s left',
  );
  assert.match(progressText('a', 0, 1000 * MIB, MIB), / 17 min left$/);
  assert.match(progressText('a', 0, 100_000 * MIB, MIB), / 28 h left$/);
  assert.equal(progressText('a', 0, 10, null), 'a  0 %  0 bytes of 10 bytes');
  assert.equal(progressText('\u001b[2J', 0, 0, 0), '\\u{1b}[2J  100 %  0 bytes of 0 bytes  0 bytes/s');
});

test('rewrites the line, clears it at the end, and stays silent in a pipe', () => {
  const written = (isTTY: boolean, isSilent: boolean): string[] => {
    const stderr = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY });
    const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr, env: {} };
    const texts: string[] = [];
    stderr.on('data', (text: string) => texts.push(text));
    const line = new ProgressLine(io, isSilent);
    for (let at = 0; at < 1000; at += 50) line.show(() => `${at}`, at);
    line.clear();
    line.clear();
    stderr.read();
    return texts;
  };
  assert.equal(written(false, false).length + written(true, true).length, 0);
  const all = written(true, false).join('');
  assert.deepEqual(all.split('\r\u001b[2K'), ['', '0', '200', '400', '600', '800', '']);
});
