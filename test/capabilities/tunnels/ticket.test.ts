import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawTicket } from '../../../src/capabilities/tunnels/opening.ts';
import { toHex } from '../../../src/foundation/bytes.ts';

test('no two tickets are alike, and each has its bytes to itself', () => {
  const tickets = Array.from({ length: 1000 }, () => drawTicket());
  const seen = new Set(tickets.map(toHex));
  assert.equal(seen.size, tickets.length);
  assert.ok(!seen.has('00'.repeat(16)));
  for (const ticket of tickets) {
    assert.equal(ticket.length, 16);
    assert.equal(ticket.buffer.byteLength, 16, 'other tickets cannot be reached through its memory');
  }
});
