import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { Command } from 'commander';
import { SvcError } from '../../../src/foundation/errors.ts';
import { CommandGroup } from '../../../src/surfaces/cli/command-group.ts';
import { CliContext, type GlobalOptions } from '../../../src/surfaces/cli/context.ts';
import {
  ACTING_AGENT,
  accessToken,
  choice,
  integer,
  repeatable,
  required,
  type ValueOption,
} from '../../../src/surfaces/cli/options.ts';
import { helpText } from '../../../tools/command-tree.ts';
import { newIdentity } from '../../support/identities.ts';

const [{ aid: one }, { aid: two }] = [newIdentity(), newIdentity()];
const AGENT = { text: () => '', examples: [] } as const;

interface Answer {
  readonly status?: number;
  readonly body: unknown;
  /** Delays the response. */
  readonly when?: () => Promise<unknown>;
}

interface World {
  readonly svc: CommandGroup;
  /** Requests to the daemon. */
  readonly asked: { readonly line: string; readonly body: unknown }[];
  readonly run: (
    line: string,
    env?: Readonly<Record<string, string>>,
    terminal?: boolean,
  ) => Promise<{ out: string; err: string }>;
  readonly program: Command;
}

/** Commands against a daemon with fixed responses, by method and path. */
async function world(t: TestContext, answers: Readonly<Record<string, Answer>>): Promise<World> {
  const asked: World['asked'] = [];
  const server = createServer((request, response) => {
    const line = `${request.method} ${request.url}`;
    void (request.method === 'GET' ? Promise.resolve(undefined) : json(request)).then(async (body) => {
      asked.push({ line, body });
      const answer = answers[line] ?? { status: 404, body: { error: 'not_found', message: `No ${line}.` } };
      await answer.when?.();
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer.body));
    });
  });
  await once(server.listen(0, '127.0.0.1').unref(), 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  const api = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const program = new Command('svc').option('--json').option('--quiet').exitOverride();
  program.configureOutput({ writeErr: () => {} });
  let streams = { stdout: new PassThrough(), stderr: new PassThrough(), stdin: new PassThrough(), env: {} };
  const contextOf = (command: Command): CliContext =>
    new CliContext(streams, { ...command.optsWithGlobals<GlobalOptions>(), api }, '/nonexistent');
  const run: World['run'] = async (line, env = {}, terminal = false) => {
    const isTTY = terminal ? { isTTY: true } : {};
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    streams = { ...streams, env, stdout: Object.assign(stdout, isTTY), stderr: Object.assign(stderr, isTTY) };
    await program.parseAsync(line.split(' '), { from: 'user' });
    return { out: String(streams.stdout.read() ?? ''), err: String(streams.stderr.read() ?? '') };
  };
  return { svc: new CommandGroup(program, contextOf, 'svc'), asked, run, program };
}

test('passes parsed values by name', async (t) => {
  const { svc, run, program } = await world(t, {});
  const seen: unknown[] = [];
  svc.run('all <first-word> [rest...]', 'takes everything', {
    options: {
      '--limit <n>': integer('a number'),
      '--tag <name>': repeatable('a tag'),
      '--some <word...>': 'words',
      '--access-token <secret>': accessToken('a value'),
      '--no-relay': 'directly',
      '-y, --yes': 'do not ask',
      '--secret [secret]': 'given or asked for',
      '--addr <address>': required('where'),
    },
    run: async (_, typed) => {
      // The compiler checks the types of the parsed values.
      const { first_word, rest, limit, tag, some, access_token, relay, yes, secret, addr } = typed;
      const words: [string, string | undefined, string] = [first_word, access_token, addr];
      const lists: (readonly string[] | undefined)[] = [tag, some];
      const others: [number | undefined, boolean, true | undefined, string | true | undefined] = [
        limit,
        relay,
        yes,
        secret,
      ];
      seen.push(words, rest, lists, others);
    },
    text: () => '',
  });
  await run('all a b c --limit 7 --tag x --tag y --some p q --no-relay -y --secret --addr h');
  assert.deepEqual(seen.splice(0), [
    ['a', undefined, 'h'],
    ['b', 'c'],
    [
      ['x', 'y'],
      ['p', 'q'],
    ],
    [7, false, true, true],
  ]);
  await run('all a --addr h', { SVC_ACCESS_TOKEN: 'kept' });
  assert.deepEqual(
    [seen[0], seen[3]],
    [
      ['a', 'kept', 'h'],
      [undefined, true, undefined, undefined],
    ],
  );
  seen.splice(0);
  await run('all a --addr h --access-token typed', { SVC_ACCESS_TOKEN: 'kept' });
  assert.deepEqual(seen[0], ['a', 'typed', 'h']);
  await assert.rejects(run('all a'), /required option '--addr/);
  for (const number of ['x', '1.5', '']) {
    const wrong = program.parseAsync(['all', 'a', '--addr', 'h', '--limit', number], { from: 'user' });
    await assert.rejects(wrong, /Not an integer/);
  }
});

test('supports default arguments, implied options and conflicts', async (t) => {
  const { svc, run } = await world(t, {});
  const path: ValueOption<string> = { about: 'where', otherwise: '/' };
  const key: ValueOption<string | undefined> = { about: 'a key', implies: { wallet: true }, conflicts: ['plain'] };
  const takes = { '[path]': path, '--key <key>': key, '--wallet': 'of a wallet', '--plain': 'of none' } as const;
  const seen: unknown[] = [];
  svc.run('take', 'takes', { options: takes, run: async (_, typed) => void seen.push({ ...typed }), text: () => '' });
  await run('take');
  await run('take /x --key k');
  assert.deepEqual(seen, [{ path: '/' }, { path: '/x', key: 'k', wallet: true }]);
  await assert.rejects(run('take --key k --plain'), /cannot be used with option '--plain'/);
});

test('calls an operation over REST and resolves labels', async (t) => {
  const { svc, run, asked } = await world(t, {
    'GET /node/address-book': { body: { aliases: { [two]: 'Bob' }, favorites: [] } },
    [`DELETE /agents/${two}`]: { body: { ok: true } },
    [`PATCH /agents/${two}/acl`]: { body: { ok: true } },
  });
  svc.call('del <aid>', 'deletes', { ...AGENT, operation: 'agentDelete' });
  await run('del bob');
  assert.equal(asked.at(-1)?.line, `DELETE /agents/${two}`);
  svc.call('default <agent>', 'sets', {
    ...AGENT,
    options: { '<policy>': choice('public', 'deny') },
    operation: 'aclPatch',
    input: ({ agent: aid, policy }) => ({ aid, default: policy }),
  });
  await run('default bob deny');
  assert.deepEqual(asked.at(-1), { line: `PATCH /agents/${two}/acl`, body: { default: 'deny' } });
  svc.call('deny <agent> <aid>', 'denies', {
    ...AGENT,
    operation: 'aclDeny',
    input: ({ agent, aid }) => ({ aid: agent, body_aid: aid }),
  });
  await assert.rejects(run('deny bob bob'), /No POST/);
  assert.deepEqual(asked.at(-1), { line: `POST /agents/${two}/acl/deny`, body: { aid: two } });
  await assert.rejects(run('default bob nobody'), /Allowed choices are public, deny/);
  await assert.rejects(run('del eve'), (error) => error instanceof SvcError && error.code === 'bad_aid');
});

test('calls tools as the acting agent', async (t) => {
  const call = 'POST /mcp/call';
  const agents = { body: { agents: [{ aid: one }] } };
  const { svc, run, asked } = await world(t, {
    'GET /node/address-book': { body: { aliases: { [two]: 'Bob' }, favorites: [] } },
    'GET /agents?limit=2': agents,
    [call]: { body: { pending: {} } },
  });
  svc.call('join <link>', 'joins', {
    ...AGENT,
    options: { ...ACTING_AGENT, '--hint <aid...>': 'members' },
    operation: 'groupJoin',
    input: ({ aid, link, hint }) => ({ aid, link, member_hints: hint }),
  });
  await run(`join a:b --hint bob ${one}`);
  const args = { aid: one, link: 'a:b', member_hints: [two, one] };
  assert.deepEqual(asked.at(-1), { line: call, body: { tool: 'group_join', args } });
  svc.call('accept <peer>', 'accepts', { ...AGENT, options: ACTING_AGENT, operation: 'chatAccept' });
  await run('accept bob --aid bob');
  assert.deepEqual(asked.at(-1)?.body, { tool: 'chat_accept', args: { aid: two, peer: two } });
  svc.call('locate <object_id>', 'locates', { ...AGENT, options: ACTING_AGENT, operation: 'objectLocate' });
  await run(`locate ${'9f'.repeat(32)}`);
  assert.deepEqual(asked.at(-1)?.body, { tool: 'group_object_locate', args: { aid: one, object_id: '9f'.repeat(32) } });
});

test('requires a choice between several agents, and reports that there is none', async (t) => {
  const several = await world(t, {
    'GET /agents?limit=2': { body: { agents: [{ aid: one }, { aid: two }] } },
    'GET /agents?limit=21': { body: { agents: [{ aid: one }, { aid: two, name: 'Second' }] } },
  });
  several.svc.call('list', 'lists', { ...AGENT, options: ACTING_AGENT, operation: 'groupList' });
  await assert.rejects(several.run('list'), /There are several agents: aid1\w{8,}…, .*\. Name one with --as/);
  const none = await world(t, { 'GET /agents?limit=2': { body: { agents: [] } } });
  none.svc.call('list', 'lists', { ...AGENT, options: ACTING_AGENT, operation: 'groupList' });
  await assert.rejects(none.run('list'), /No agent is registered here/);
});

test('adds a hint to errors about agents that are not registered here', async (t) => {
  const { svc, run } = await world(t, {});
  svc.call('poll <aid>', 'polls', { ...AGENT, operation: 'mailboxPoll', own: true });
  await assert.rejects(run(`poll ${one}`), /"svc agents" lists your agents/);
  svc.call('get <aid>', 'gets', { ...AGENT, operation: 'agentGet' });
  await assert.rejects(run(`get ${one}`), (error) => error instanceof Error && !error.message.includes('lists those'));
});

test('prints a response in the requested format, safe for a terminal', async (t) => {
  const { svc, run } = await world(t, {});
  svc.run('show <word>', 'shows', {
    run: async () => ({ value: 'a\u001b[2J', more: 1 }),
    json: ({ value }) => ({ value }),
    text: ({ value }, { word }) => `${word}: ${value}`,
    quiet: ({ value }) => value,
    paint: (text) => `<${text}>`,
    remark: ({ more }, { word }) => `${word} has ${more} more\u001b[2J`,
  });
  assert.deepEqual(await run('show it'), { out: '<it: a\\u{1b}[2J>\n', err: 'it has 1 more\\u{1b}[2J\n' });
  assert.deepEqual(await run('--quiet show it'), { out: 'a\\u{1b}[2J\n', err: '' });
});

test('--json prints the response without hints', async (t) => {
  const { svc, run } = await world(t, {});
  const shown = { run: async () => ({ a: 1, b: 2 }), text: () => 'text', remark: () => 'remark' };
  svc.run('all', 'everything', shown);
  svc.run('part', 'a part', { ...shown, json: ({ a }) => ({ a }) });
  assert.deepEqual(await run('--json all'), { out: '{\n  "a": 1,\n  "b": 2\n}\n', err: '' });
  assert.deepEqual(await run('--json part'), { out: '{\n  "a": 1\n}\n', err: '' });
});

test('a pipe receives bytes, a terminal text', async (t) => {
  const { svc, run } = await world(t, {});
  svc.run('raw', 'raw', { run: async () => 'a\u0007', text: (a) => a, bytes: (a) => Buffer.from(a) });
  assert.equal((await run('raw')).out, 'a\u0007');
  assert.equal((await run('raw', {}, true)).out, 'a\\u{7}\n');
});

test('an empty text prints nothing', async (t) => {
  const { svc, run } = await world(t, {});
  svc.run('link', 'a link', { run: async () => 1, text: () => '' });
  assert.equal((await run('link')).out, '');
});

test('shows progress on a terminal during long work', async (t) => {
  const { svc, run } = await world(t, {});
  // Resolves with the first text on stderr.
  const told = (context: CliContext) => once(context.io.stderr, 'data').then(String);
  svc.run('work', 'works', { progress: 'Working', run: told, text: (said) => said });
  assert.match((await run('work', {}, true)).out, /Working …/);
  const asking = Promise.withResolvers<CliContext>();
  const { svc: other, run: ask } = await world(t, {
    'GET /status': { body: {}, when: () => asking.promise.then(told) },
  });
  other.call('status', 'asks', {
    ...AGENT,
    progress: 'Asking',
    operation: 'status',
    input: (_, context) => {
      asking.resolve(context);
      return {};
    },
  });
  assert.equal((await ask('status', {}, true)).out, '');
});

test('a command can fail after printing its response', async (t) => {
  const { svc, run } = await world(t, {});
  svc.run('fail', 'fails', {
    run: async () => 1,
    text: () => 'shown',
    fails: (a) => (a === 1 ? 'It is one.' : undefined),
  });
  await assert.rejects(run('fail'), { name: 'Unsuccessful', message: 'It is one.' });
});

test('prints nothing without a result', async (t) => {
  const { svc, run } = await world(t, {});
  svc.run('none', 'none', { run: async () => undefined, text: () => 'never', remark: () => 'never' });
  assert.deepEqual(await run('none'), { out: '', err: '' });
});

test('runs the default command of a group', async (t) => {
  const { svc, run } = await world(t, {});
  const group = svc.group('agents', 'the agents', ['svc agents'], { run: async () => 'itself', text: (a) => a });
  group.run('one', 'one', { run: async () => 'one', text: (a) => a });
  assert.equal((await run('agents')).out, 'itself\n');
  assert.equal((await run('agents one')).out, 'one\n');
});

test('the default example has the required arguments', async (t) => {
  const { svc, program } = await world(t, {});
  const group = svc.group('group', 'groups', ['svc group list']);
  const nothing = { run: async () => undefined, text: () => '' };
  group.run('retract <group> <entry> [why]', 'withdraws', { ...nothing, options: { '<by-whom>': 'an agent' } });
  group.run('other', 'other', { ...nothing, examples: ['svc group other --x'] });
  const helps = program.commands[0]?.commands.map((command) => helpText(command)) ?? [];
  assert.match(helps[0] ?? '', /\nExample:\n {2}svc group retract 9f2c… 4be1… aid1…\n/);
  assert.match(helps[1] ?? '', /\nExample:\n {2}svc group other --x\n/);
});

test('the compiler rejects a command that does not fit its operation', async (t) => {
  const { svc } = await world(t, {});
  // @ts-expect-error the operation has no "agent"
  svc.call('a <agent>', '', { ...AGENT, operation: 'agentGet' });
  // @ts-expect-error it has no "x" either
  svc.call('b <aid>', '', { ...AGENT, options: { '--x': '' }, operation: 'agentGet' });
  // @ts-expect-error it wants a number
  svc.call('c', '', { ...AGENT, options: { '--limit <n>': '' }, operation: 'remoteAdminAudit' });
  // @ts-expect-error it cannot do without
  svc.call('d [aid]', '', { ...AGENT, operation: 'agentGet' });
  // @ts-expect-error the answer has no "nothing"
  svc.call('e <aid>', '', { operation: 'agentGet', text: (answer) => answer.nothing });
  // @ts-expect-error nothing of that name was typed
  svc.call('f <agent>', '', { ...AGENT, operation: 'agentGet', input: ({ other }) => ({ aid: other }) });
  svc.call('g <aid>', '', { ...AGENT, options: { '--limit <n>': integer('') }, operation: 'mailboxList' });
});
