import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import {
  isReady,
  isRestart,
  isStop,
  isSwitch,
  MANAGED_VARIABLE,
  onSupervisorStop,
  supervisorOf,
} from '../../../src/daemon/service/managed.ts';

test('messages have a valid type and all fields', () => {
  assert.ok(isSwitch({ type: 'switch', version: '1.1.0' }));
  assert.ok(isStop({ type: 'stop' }));
  assert.ok(isReady({ type: 'ready', api_addr: '127.0.0.1:2121' }));
  for (const message of [
    null,
    undefined,
    'switch',
    7,
    [],
    {},
    { type: 'switch' },
    { type: 'switch', version: 1 },
    { version: '1.1.0' },
    { type: 'ready' },
    { type: 'ready', api_addr: null },
    { type: 'Stop' },
  ]) {
    assert.ok(!isSwitch(message) && !isReady(message), JSON.stringify(message));
    assert.ok(!isStop(message), JSON.stringify(message));
  }
});

test('a process has a supervisor only with the variable and an IPC channel', () => {
  const sent: unknown[] = [];
  const send = (message: unknown): boolean => sent.push(message) > 0;
  assert.equal(supervisorOf({ env: {}, send }), null, 'started by another program with a channel');
  assert.equal(supervisorOf({ env: { [MANAGED_VARIABLE]: '1' } }), null, 'the variable was inherited');
  assert.equal(supervisorOf({ env: { [MANAGED_VARIABLE]: '0' }, send }), null);
  const supervisor = supervisorOf({ env: { [MANAGED_VARIABLE]: '1' }, send });
  supervisor?.switchTo('1.1.0');
  supervisor?.restart();
  assert.deepEqual(sent, [{ type: 'switch', version: '1.1.0' }, { type: 'restart' }]);
  const [message, other] = sent;
  assert.ok(isSwitch(message) && isRestart(other), 'the supervisor understands it');
  assert.ok(!isRestart(message) && !isSwitch(other));
});

test('the daemon stops when its supervisor requests it or exits', () => {
  for (const end of [
    (self: EventEmitter) => self.emit('message', { type: 'stop' }),
    (self: EventEmitter) => self.emit('disconnect'),
  ]) {
    const self = new EventEmitter();
    let stops = 0;
    onSupervisorStop(self, () => void stops++);
    self.emit('message', { type: 'other' });
    self.emit('message', null);
    assert.equal(stops, 0);
    end(self);
    assert.equal(stops, 1);
  }
});
