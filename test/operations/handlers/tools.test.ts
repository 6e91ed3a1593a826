import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { toolHandlers } from '../../../src/operations/handlers/tools.ts';
import type { CallContext } from '../../../src/operations/operation.ts';
import { toolOperations } from '../../../src/operations/tools.ts';
import { operationRunner } from '../../support/run-operation.ts';

/** A table with the one tool `svc_one`, which the test defines. */
function setUp(call: (args: unknown, context: CallContext) => unknown = () => ({ done: true })) {
  const asked: unknown[] = [];
  const tools = {
    has: (name: string) => name === 'svc_one',
    call: async (name: string, args: unknown, context: CallContext) => {
      asked.push([name, args]);
      return call(args, context);
    },
  };
  return { asked, run: operationRunner(toolOperations, toolHandlers({ tools })) };
}

test('a tool is called with its arguments or none, and its result is the response', async () => {
  const { run, asked } = setUp();
  assert.deepEqual(await run('toolCall', { body: { tool: 'svc_one', args: { a: 1 } } }), { done: true });
  await run('toolCall', { body: { tool: 'svc_one' } });
  assert.deepEqual(asked, [
    ['svc_one', { a: 1 }],
    ['svc_one', {}],
  ]);
});

test('an unknown tool is not found, which is not a tool error', async () => {
  const { run, asked } = setUp();
  await assert.rejects(run('toolCall', { body: { tool: 'svc_two' } }), (error) => {
    assert.ok(error instanceof SvcError);
    assert.deepEqual([error.code, error.status], ['not_found', 404]);
    return true;
  });
  for (const body of [{}, { tool: '' }, { tool: 'x'.repeat(129) }, { tool: 'svc_one', args: [] }, { tool: 1 }])
    await assert.rejects(run('toolCall', { body }), { code: 'invalid_request' }, JSON.stringify(body));
  assert.deepEqual(asked, []);
});

test('an error of the tool keeps code, message and details, with a status that marks it as a tool error', async () => {
  const cause = new SvcError('rate_limited', { message: 'Slow down.', details: { retry_after_s: 3 } });
  const { run } = setUp(() => {
    throw cause;
  });
  await assert.rejects(run('toolCall', { body: { tool: 'svc_one' } }), (error) => {
    assert.ok(error instanceof SvcError);
    assert.deepEqual([error.code, error.status, error.message], ['rate_limited', 422, 'Slow down.']);
    assert.deepEqual(error.details, { retry_after_s: 3 });
    assert.equal(error.cause, cause);
    return true;
  });
  const { run: bare } = setUp(() => {
    throw new SvcError('not_found');
  });
  await assert.rejects(bare('toolCall', { body: { tool: 'svc_one' } }), (error) => {
    assert.ok(error instanceof SvcError && error.status === 422);
    assert.equal(error.details, undefined);
    return true;
  });
});

test('an internal error is not a tool error', async () => {
  for (const fault of [new SvcError('internal'), new TypeError('a bug')]) {
    const { run } = setUp(() => {
      throw fault;
    });
    await assert.rejects(run('toolCall', { body: { tool: 'svc_one' } }), (error) => error === fault);
  }
});

test('the tool gets the caller, the timeout and the token check, but cannot set a status', async () => {
  const controller = new AbortController();
  const heard: unknown[] = [];
  const { run } = setUp((_args, context) => {
    heard.push(context.origin, context.signal === controller.signal);
    context.requireToken();
    context.setStatus(201);
    context.onTool?.('svc_one');
    context.onAnswered?.((arrived) => void heard.push(arrived));
    return {};
  });
  await run(
    'toolCall',
    { body: { tool: 'svc_one' } },
    {
      origin: 'remote_admin',
      signal: controller.signal,
      requireToken: () => void heard.push('token'),
      setStatus: () => assert.fail('a status was set'),
      onTool: (name) => void heard.push(name),
      onAnswered: (settled) => settled(false),
    },
  );
  assert.deepEqual(heard, ['remote_admin', true, 'token', 'svc_one', false]);
});

test('the tool can detect the arrival of its response only if the surface can', async () => {
  const { run } = setUp((_args, context) => ({ can: context.onAnswered !== undefined }));
  assert.deepEqual(await run('toolCall', { body: { tool: 'svc_one' } }), { can: false });
  assert.deepEqual(await run('toolCall', { body: { tool: 'svc_one' } }, { onAnswered: () => {} }), { can: true });
});
