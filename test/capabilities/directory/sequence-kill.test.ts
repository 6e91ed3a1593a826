import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { toHex } from '../../../src/foundation/bytes.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const LOOP = fileURLToPath(new URL('../../support/publish-loop.ts', import.meta.url));
const LIVES = 4;

test('a process killed during a publication never reuses a number', async (t) => {
  const file = join(temporaryDirectory(t), 'node.db');
  const seed = toHex(KeyPair.generate().seed);
  const numbers: number[] = [];
  for (let life = 0; life < LIVES; life++) {
    const child = spawn(process.execPath, [LOOP, file, seed], { stdio: ['ignore', 'pipe', 'inherit'] });
    const closed = once(child, 'close');
    const until = numbers.length + 20 + 7 * life;
    for await (const line of createInterface({ input: child.stdout })) {
      numbers.push(Number(line));
      if (numbers.length === until) child.kill('SIGKILL');
    }
    await closed;
  }
  assert.ok(numbers.length >= LIVES * 20);
  for (const [i, seq] of numbers.entries()) assert.ok(seq > (numbers[i - 1] ?? 0), numbers.join(' '));
});
