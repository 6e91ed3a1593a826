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
import { accessToken, integer, repeatable, required, type ValueOption } from '../../../src/surfaces/cli/options.ts';
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
  /** Standard error of the last command. */
  readonly stderr: () => PassThrough;
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
  return { svc: new CommandGroup(program, contextOf, 'svc'), asked, run, program, stderr: () => streams.stderr };
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
  svc.call('agentDelete', 'del <aid>', 'deletes', AGENT);
  await run('del bob');
  assert.equal(asked.at(-1)?.line, `DELETE /agents/${two}`);
  svc.call('aclPatch', 'default <agent=aid> <policy=default>', 'sets', AGENT);
  await run('default bob deny');
  assert.deepEqual(asked.at(-1), { line: `PATCH /agents/${two}/acl`, body: { default: 'deny' } });
  svc.call('aclDeny', 'deny <agent=aid> <aid=body_aid>', 'denies', AGENT);
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
  const acting = svc.acting();
  acting.call('groupJoin', 'join <link> --hint=member_hints <aid...>', 'joins', AGENT);
  await run(`join a:b --hint bob ${one}`);
  const args = { aid: one, link: 'a:b', member_hints: [two, one] };
  assert.deepEqual(asked.at(-1), { line: call, body: { tool: 'group_join', args } });
  acting.call('chatAccept', 'accept <peer>', 'accepts', AGENT);
  await run('accept bob --aid bob');
  assert.deepEqual(asked.at(-1)?.body, { tool: 'chat_accept', args: { aid: two, peer: two } });
  acting.call('objectLocate', 'locate <object>', 'locates', AGENT);
  await run(`locate ${'9f'.repeat(32)}`);
  assert.deepEqual(asked.at(-1)?.body, { tool: 'group_object_locate', args: { aid: one, object_id: '9f'.repeat(32) } });
});

test('requires a choice between several agents, and reports that there is none', async (t) => {
  const several = await world(t, {
    'GET /agents?limit=2': { body: { agents: [{ aid: one }, { aid: two }] } },
    'GET /agents?limit=21': { body: { agents: [{ aid: one }, { aid: two, name: 'Second' }] } },
  });
  several.svc.acting().call('groupList', 'list', 'lists', AGENT);
  await assert.rejects(several.run('list'), /There are several agents: aid1\w{8,}…, .*\. Name one with --as/);
  const none = await world(t, { 'GET /agents?limit=2': { body: { agents: [] } } });
  none.svc.acting().call('groupList', 'list', 'lists', AGENT);
  await assert.rejects(none.run('list'), /No agent is registered here/);
});

test('adds a hint to errors about agents that are not registered here', async (t) => {
  const { svc, run } = await world(t, {});
  svc.call('mailboxPoll', 'poll <aid>', 'polls', { ...AGENT, own: true });
  await assert.rejects(run(`poll ${one}`), /"svc agents" lists your agents/);
  svc.call('agentGet', 'get <aid>', 'gets', AGENT);
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
  const reported = (context: CliContext) => once(context.io.stderr, 'data').then(String);
  svc.run('work', 'works', { progress: 'Working', run: reported, text: (output) => output });
  assert.match((await run('work', {}, true)).out, /Working …/);
  const other: World = await world(t, { 'GET /status': { body: {}, when: () => once(other.stderr(), 'data') } });
  other.svc.call('status', 'status', 'asks', { ...AGENT, progress: 'Asking' });
  assert.equal((await other.run('status', {}, true)).out, '');
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
  // @ts-expect-error the operation sets no "agent"
  svc.call('agentGet', 'a <aid>', '', { ...AGENT, sets: { agent: two } });
  // @ts-expect-error it wants a number
  svc.call('remoteAdminAudit', 'b', '', { ...AGENT, sets: { limit: 'x' } });
  // @ts-expect-error it has no "x"
  svc.call('agentGet', 'c <aid>', '', { ...AGENT, help: { x: '' } });
  // @ts-expect-error the answer has no "nothing"
  svc.call('agentGet', 'd <aid>', '', { text: (answer) => answer.nothing });
  // @ts-expect-error nothing of that name was typed
  svc.call('agentGet', 'e <aid>', '', { text: (_, { other }) => other });
  // @ts-expect-error the answer has no "nothing"
  svc.call('agentGet', 'f <aid>', '', { ...AGENT, quiet: 'nothing' });
  // @ts-expect-error a group has no "nothing"
  svc.call('groupList', 'g <aid>', '', { table: { of: 'groups', columns: { NOTHING: 'nothing' } } });
});

test('rejects a usage that does not fit its operation', async (t) => {
  const { svc } = await world(t, {});
  const add = (usage: string) => () => svc.call('chatRead', usage, 'reads', AGENT);
  assert.throws(add('a <aid> <agent>'), /Not one member of the input fits "agent"/);
  assert.throws(add('b <aid> <peer> --x'), /Not one member of the input fits "x"/);
  assert.throws(add('c <aid> <agent=x>'), /chatRead has no input "x"/);
  assert.throws(add('d <aid>'), /chatRead also needs peer/);
  assert.throws(add('e <peer>'), /chatRead also needs aid/);
  add('f <aid> <peer> --after <seq>')();
  assert.throws(() => svc.call('hookPatch', 'g <id>', 'pauses', AGENT), /hookPatch also needs paused/);
  svc.call('hookPatch', 'h <id>', 'pauses', { ...AGENT, sets: { paused: true } });
});

test('arguments and options follow from the input of the operation', async (t) => {
  const page = { friends: [], in_pending: [], out_pending: [], blocked: [], next_cursor: 'n' };
  const { svc, run, asked, program } = await world(t, {
    'GET /node/address-book': { body: { aliases: {} } },
    [`GET /agents/${one}/chat/peers/${two}?after_seq=7&limit=3`]: { body: { scanned_to: 9, entries: [] } },
    [`GET /agents/${one}/chat/contacts?limit=1&cursor=c`]: { body: page },
    [`POST /connect/${two}`]: { body: { tunnel: 'h:1' } },
    'PATCH /hooks/9f': { body: { id: '9f' } },
    'DELETE /hooks/9f': { body: { ok: true } },
    'GET /origins': { body: { origins: [{ url: 'u', opened_at: new Date().toISOString() }] } },
  });
  svc.call('chatRead', 'read <aid> <peer> --after <seq> --before <seq> --limit <count>', 'reads', {
    help: { peer: 'the other agent', before_seq: 'earlier ones' },
    text: (_, { after_seq }) => `after ${after_seq}`,
    quiet: 'scanned_to',
  });
  const help = helpText(program.commands[0] ?? program);
  assert.match(help, /^ {2}peer +the other agent$/m);
  assert.match(help, /--after <seq> +scanned_to of the previous page\n/);
  assert.match(help, /--before <seq> +earlier ones\n/);
  assert.match(help, /--limit <count> +maximum 200\n/);
  const unreached = run(`read ${one} ${two} --after 7 --limit 3`);
  await assert.rejects(unreached, /No POST \/mcp\/call/);
  assert.deepEqual(asked.at(-1)?.body, {
    tool: 'chat_read',
    args: { aid: one, peer: two, after_seq: 7, limit: 3 },
  });
  await assert.rejects(run(`read ${one} ${two} --after x`), /Not an integer/);

  svc.call('chatContacts', 'contacts <aid>', 'lists', { text: 'two' });
  assert.deepEqual(await run(`contacts ${one} --limit 1 --cursor c`), { out: 'two\n', err: "More: --cursor 'n'\n" });

  svc.call('connect', 'connect <aid> --no-relay=disable_relay --access-token <secret>', 'connects', {
    text: ({ tunnel }) => tunnel,
  });
  assert.equal((await run(`connect ${two} --local-aid ${one}`, { SVC_ACCESS_TOKEN: 'kept' })).out, 'h:1\n');
  assert.deepEqual(asked.at(-1)?.body, { disable_relay: false, access_token: 'kept', local_aid: one });
  await run(`connect ${two} --no-relay`);
  assert.deepEqual(asked.at(-1)?.body, { disable_relay: true });

  svc.call('hookPatch', 'pause <id>', 'pauses', { sets: { paused: true }, text: (_, { paused }) => `${paused}` });
  assert.equal((await run('pause 9f')).out, 'true\n');
  assert.deepEqual(asked.at(-1)?.body, { paused: true });
  svc.call('hookRemove', 'remove <id>', 'removes', { text: 'Removed.' });
  assert.deepEqual([(await run('remove 9f')).out, (await run('--quiet remove 9f')).out], ['Removed.\n', '9f\n']);

  const columns = { URL: 'url', OPENED: 'opened_at', STATE: () => 'open' } as const;
  svc.call('originList', 'list', 'lists', { table: { of: 'origins', columns, none: 'None.' } });
  assert.match((await run('list')).out, /^URL {2}OPENED +STATE\nu +(?:now|just now|\d+ s.*?) +open\n$/);
  assert.equal((await run('--quiet list')).out, 'u\n');
});
