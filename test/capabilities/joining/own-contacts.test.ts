import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contactsForInvitation, type NodeFacts } from '../../../src/capabilities/joining/own-contacts.ts';
import { formatAddress } from '../../../src/foundation/address.ts';
import type { OwnAddress } from '../../../src/network/reachability/own-address.ts';

const NODE_KEY = new Uint8Array(32).fill(1);
const HELPER = { host: '198.51.100.9', port: 4121, nodeKey: new Uint8Array(32).fill(2) };

function own(host: string, source: OwnAddress['source'], verifiedBy: OwnAddress['verifiedBy'] = null): OwnAddress {
  return { address: { host, port: 4122 }, source, verifiedBy };
}

function given(facts: Partial<NodeFacts>) {
  const { contacts, reach } = contactsForInvitation({
    nodeKey: NODE_KEY,
    dht: { host: '0.0.0.0', port: 4121 },
    known: [],
    mapped: [],
    isReached: false,
    others: [],
    ...facts,
  });
  return { reach, at: contacts.map(formatAddress) };
}

const LAN = own('192.168.1.2', 'lan');

test('a reachable node names itself, with the port of its record network', () => {
  const known = [own('203.0.113.7', 'interface', 'peers'), LAN];
  assert.deepEqual(given({ known, isReached: true, others: [HELPER] }), {
    reach: 'anywhere',
    at: ['203.0.113.7:4121', '192.168.1.2:4121'],
  });
});

test('behind a NAT the node names its helpers, and itself for its LAN', () => {
  const known = [own('203.0.113.7', 'observed'), own('203.0.113.7', 'mapped'), LAN];
  assert.deepEqual(given({ known, others: [HELPER] }), {
    reach: 'helped',
    at: ['198.51.100.9:4121', '192.168.1.2:4121'],
  });
});

test('an address that is not confirmed yet is reported as such', () => {
  assert.equal(given({ known: [own('203.0.113.7', 'interface'), LAN] }).reach, 'unproven');
  assert.deepEqual(given({ known: [own('node.example', 'configured'), LAN] }), {
    reach: 'unproven',
    at: ['node.example:4121', '192.168.1.2:4121'],
  });
  assert.deepEqual(given({ known: [LAN], mapped: [{ host: '203.0.113.7', port: 9 }] }), {
    reach: 'unproven',
    at: ['203.0.113.7:9', '192.168.1.2:4121'],
  });
});

test('without a public address, the invitation only works in the LAN or on the machine', () => {
  assert.deepEqual(given({ known: [LAN, own('10.0.0.1', 'lan'), own('10.1.0.1', 'lan')] }), {
    reach: 'lan',
    at: ['192.168.1.2:4121', '10.0.0.1:4121'],
  });
  const dht = { host: '127.0.0.1', port: 7 };
  assert.deepEqual(given({ dht, known: [own('127.0.0.1', 'configured')] }), { reach: 'machine', at: ['127.0.0.1:7'] });
  assert.deepEqual(given({ known: [own('2001:db8::1', 'interface')] }).at, []);
});
