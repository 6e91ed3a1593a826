import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClosedTunnels } from '../../../src/capabilities/tunnels/closed-tunnels.ts';
import { ERRORS, isErrorCode, noSuchAgent, SvcError } from '../../../src/foundation/errors.ts';
import { memberOf } from '../../../src/foundation/json.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { failure, nextStep, success } from '../../../src/surfaces/mcp/results.ts';
import { INSTRUCTIONS } from '../../../src/surfaces/mcp/server.ts';
import { bindAll } from './world.ts';

const views = new ToolTable({ operations: bindAll(), pending: () => ({}) }).list();
const names = new Set(views.map(({ name }) => name));
const THINGS = ['agent', 'tunnel', 'group', 'entry', 'object', 'file', 'service', 'tool'] as const;
/** Far above the normal time, and far below quadratic time: microseconds of this process. */
const MAX_CPU_US = 5_000_000;

function view(name: string) {
  const found = views.find((one) => one.name === name);
  assert.ok(found);
  return found;
}

function textsOf({ content }: ReturnType<typeof success>): string[] {
  return content.map((part) => (part.type === 'text' ? part.text : part.type));
}

test('tools named in hints exist', () => {
  const reported = [
    INSTRUCTIONS,
    ...Object.keys(ERRORS)
      .filter(isErrorCode)
      .map((code) => nextStep(code)),
    ...THINGS.map((thing) => nextStep('not_found', thing)),
  ].join('\n');
  const called = new Set(reported.match(/\b(?:svc|chat|group)_[a-z_]+/g));
  assert.deepEqual(
    [...called].filter((name) => !names.has(name)),
    [],
  );
  assert.ok(called.size >= 15);
});

test('every error has a next step', () => {
  for (const code of Object.keys(ERRORS).filter(isErrorCode)) assert.match(nextStep(code), /^[A-Z].*\.$/s, code);
  assert.equal(nextStep('cancelled'), 'Report the error to the user.');
});

test('a result is text and structured content, with pending items outside of the fence', () => {
  const plain = { a: 1, pending: { x: { mailbox: 1 } } };
  const own = success(view('svc_status'), {}, plain);
  assert.deepEqual([textsOf(own), own.structuredContent], [[JSON.stringify(plain)], plain]);
  const foreign = success(view('svc_mailbox_list'), {}, { messages: [], pending: plain.pending });
  const [fenced = '', waiting, ...more] = textsOf(foreign);
  assert.match(fenced, /<untrusted-[0-9a-f]{16}>\n\{"messages":\[\]\}\n/);
  assert.deepEqual([waiting, more], [JSON.stringify({ pending: plain.pending }), []]);
  assert.equal(typeof memberOf(foreign.structuredContent, 'untrusted'), 'string');
});

test('text that starts like a mark and continues with spaces causes no delay', () => {
  const began = process.cpuUsage();
  for (const slash of ['', '/']) {
    const blanks = `<${' '.repeat(24_000)}`;
    const text = `${blanks}${slash}${blanks.slice(1)}`;
    const [fenced = ''] = textsOf(success(view('svc_mailbox_list'), {}, { messages: [`${text}untrusted`, text] }));
    assert.ok(fenced.includes(`"\\u003c${text.slice(1)}untrusted"`));
    assert.ok(fenced.includes(`"${text}"`));
  }
  // With a quadratic pattern it takes ten seconds. CPU time of other processes does not count.
  assert.ok(process.cpuUsage(began).user < MAX_CPU_US);
});

test('a failure has code, message, details and next step, with invisible characters escaped', () => {
  const error = new SvcError('rate_limited', { message: 'Slow\u202e\ndown.', details: { wait: '\u0007' } });
  const { isError, content } = failure(error);
  assert.equal(isError, true);
  assert.deepEqual(content, [
    {
      type: 'text',
      text: 'Error rate_limited: Slow\\u202e\ndown.\nDetails: {"wait":"\\u0007"}\nNext: Wait, then call again.',
    },
  ]);
});

test('names the tool that lists the missing thing', () => {
  const reported = (error: SvcError): string => JSON.stringify(failure(error).content);
  assert.match(reported(noSuchAgent('aid1x')), /Next: svc_agents_list/);
  assert.match(reported(new ClosedTunnels().missing('x')), /Next: svc_tunnel_list/);
  assert.match(reported(new SvcError('not_found', { thing: 'group' })), /Next: group_list/);
  assert.match(reported(new SvcError('not_found')), /Next: List the existing items first/);
  assert.equal(new Set(THINGS.map((thing) => nextStep('not_found', thing))).size, THINGS.length);
});
