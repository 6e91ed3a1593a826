/**
 * A walk through every command of `svc` between two daemons, repeated for every output format. Facts come from the API,
 * not from the tested output.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { operations as d } from '../../src/operations/index.ts';
import { NodeStatus } from '../../src/operations/node.ts';
import { AidText } from '../../src/operations/schemas.ts';
import { ADDRESS, AIDS, ANY, HEX, ID, Ok, ONE_AID, SEQ, SOME, type Step, type WalkWorld } from './command-step.ts';
import { hookCommands } from './command-walk-hooks.ts';
import { hubCommands } from './command-walk-hub.ts';
import { fileCommands, groupCommands, messageCommands, objectCommands } from './command-walk-messages.ts';

const Registered = Type.Object({
  aid: AidText,
  master_file: Type.Optional(Type.String()),
  published: Type.Boolean(),
  seq: Type.Integer(),
  replicas: Type.Integer(),
});
const Doctor = Type.Object({
  ok: Type.Boolean(),
  findings: Type.Array(
    Type.Object({
      check: Type.String(),
      level: Type.Union(['PASS', 'FAIL', 'WARN', 'INFO'].map((level) => Type.Literal(level))),
      what: Type.String(),
      hint: Type.Optional(Type.String()),
    }),
  ),
});
const Info = Type.Object({
  ...d.resolve.output.properties,
  records: Type.Array(Type.Object({ rec_type: Type.Integer(), seq: Type.Integer(), ttl: Type.Integer() })),
});
const WalletKeys = Type.Object({
  aid: AidText,
  operational_private_key_hex: Type.String(),
  delegation_proof_hex: Type.String(),
});

async function nodeCommands(step: Step, { here }: WalkWorld): Promise<void> {
  await step(here, ['status'], { schema: NodeStatus, text: /^node: +aid1/m, quiet: ONE_AID });
  await step(here, ['version'], {
    schema: Type.Object({ svc: Type.String(), svcd: Type.String() }),
    text: /^svc \S+, svcd \d/,
    quiet: /^\S+$/,
  });
  await step(here, ['doctor'], { schema: Doctor, text: /PASS {2}the daemon/, quiet: /^(ok|failed)$/, codes: [0, 1] });
  await step(here, ['logs', '-n', '5'], { schema: d.nodeLog.output, text: SOME, quiet: SOME });
  const url = /^http:\/\/127\.0\.0\.1:\d+\/#login=[\w-]{22}$/;
  await step(here, ['panel', 'url'], {
    schema: Type.Object({ url: Type.String(), expires_at: Type.String() }),
    text: url,
    quiet: url,
  });
  const { code } = await here.call<{ code: string }>('POST', '/panel/login');
  const { id } = await here.call<{ id: string }>('POST', '/panel/session', { code });
  await step(here, ['panel', 'sessions'], { schema: d.panelSessions.output, text: /^ID +SINCE/, quiet: ID });
  await step(here, ['panel', 'rm', id], { schema: Ok, text: /^Ended the session/, quiet: ID });
  await step(here, ['links'], { schema: d.nodeLinks.output, text: /^PATH +ADDRESS/, quiet: AIDS });
  await step(here, ['peers'], {
    schema: d.nodePeers.output,
    text: /^ADDRESS +NODE/,
    quiet: /^(127\.0\.0\.1:\d+\n?)+$/,
  });
  await step(here, ['traffic'], { schema: d.nodeTraffic.output, text: /^(MINUTE|The first minute)/, quiet: ANY });
  await step(here, ['netcheck'], { schema: d.netcheck.output, text: /^network: +ready/, quiet: /^\w/ });
  await step(here, ['config', 'get'], { schema: d.configGet.output, text: /log_level: +info/, quiet: /log_level/ });
  await step(here, ['config', 'get', 'log_level'], { schema: Type.String(), text: /^info$/, quiet: /^info$/ });
  await step(here, ['config', 'set', 'log_level', 'info'], {
    schema: d.configPatch.output,
    text: /applied/,
    quiet: /^live$/,
  });
  const { files_root: filesRoot } = await here.call<{ files_root: string }>('GET', '/status');
  await step(here, ['config', 'set', 'files_root', filesRoot], {
    schema: d.configPatch.output,
    text: /applied/,
    quiet: /^live$/,
  });
  await step(here, ['config', 'set', 'fallback_host'], {
    schema: d.configPatch.output,
    text: /after a restart/,
    quiet: /^restart$/,
    input: 'node.example\n',
  });
}

async function joiningCommands(step: Step, { here, there }: WalkWorld): Promise<void> {
  const line = /^svc:\/\/aid1\w+\/join\/[\w-]+$/;
  await step(here, ['invite'], { schema: d.invite.output, text: line, quiet: line });
  await step(here, ['join', there.dhtAddress], {
    schema: d.join.output,
    text: /joined the network through /,
    quiet: ADDRESS,
  });
  await step(here, ['contacts'], { schema: d.contacts.output, text: /^CONTACT +NAME +FROM +LAST RESULT/, quiet: SOME });
  await step(here, ['contacts', 'rm', there.dhtAddress], {
    schema: Ok,
    text: /^Deleted the contact/,
    quiet: ADDRESS,
  });
}

async function identityCommands(step: Step, { here, service, directory }: WalkWorld): Promise<void> {
  const master = (name: string): string[] => ['--save-master', join(directory, name)];
  const bound = ['--service-tcp', service];
  const registered = { schema: Registered, text: /^aid: +\S+\nmaster key: +saved in/, quiet: /^\w+$/ };
  await step(here, ['register', ...master('1'), ...bound], registered);
  await step(here, ['agents', 'new', ...master('2')], registered);
  await step(here, ['agents', 'new-eth', ...master('3')], registered);
  await step(here, ['agents', 'new-paralism', ...master('4')], registered);
  const keys = { text: /^aid: +\S+\nmaster_private_key_hex: +[0-9a-f]{64}\n/, quiet: /^\w+$/ };
  await step(here, ['identity', 'new'], { schema: d.identityGenerate.output, ...keys });
  await step(here, ['identity', 'new-eth'], { schema: WalletKeys, ...keys });
  await step(here, ['identity', 'new-paralism'], { schema: WalletKeys, ...keys });
  const address = '0x52908400098527886E0F7030069857D2E4169EE7';
  await step(here, ['wallet', 'message', address, '--save', join(directory, 'request')], {
    schema: Type.Object({ aid: AidText, message: Type.String(), request_file: Type.String() }),
    text: /op_key:/,
    quiet: /op_key:/,
  });
}

async function agentCommands(step: Step, world: WalkWorld, aid: string): Promise<void> {
  const { here, there, service, directory } = world;
  const agent = d.agentGet.output;
  await step(here, ['agents'], { schema: d.agentsList.output, text: /^AID +NAME/, quiet: /^(\w+\n?)+$/ });
  await step(here, ['agents', 'list'], { schema: d.agentsList.output, text: /^AID +NAME/, quiet: /^(\w+\n?)+$/ });
  await step(here, ['agents', 'get', aid], { schema: agent, text: /^aid: +aid1/, quiet: /^(registered|pending)$/ });
  await step(here, ['agents', 'update', aid, '--service-tcp', service], {
    schema: agent,
    text: /answers/,
    quiet: ADDRESS,
  });
  await step(here, ['inbound', 'bind', '--addr', service, '--aid', aid], {
    schema: agent,
    text: /^Calls and tunnels to aid1\w+ go to/,
    quiet: ADDRESS,
  });
  await step(here, ['inbound', 'unbind', '--as', aid], { schema: agent, text: /has no service now/, quiet: /^aid1/ });
  await step(here, ['agents', 'update', aid, '--service-tcp', service], {
    schema: agent,
    text: /answers/,
    quiet: ADDRESS,
  });
  await step(here, ['inbound', 'key', '--aid', aid], {
    schema: d.agentCallerKey.output,
    text: /^[0-9a-f]{64}\nIt verifies the header Svc-Caller-Proof of calls to aid1/,
    quiet: HEX,
  });
  const evidence = d.evidenceGet.output;
  await step(here, ['evidence', 'status', '--aid', aid], { schema: evidence, text: /no evidence/, quiet: /^off$/ });
  await step(here, ['evidence', 'on', '--aid', aid], { schema: evidence, text: /carry evidence/, quiet: /^on$/ });
  await step(here, ['evidence', 'off', '--aid', aid], { schema: evidence, text: /no evidence/, quiet: /^off$/ });
  await step(here, ['agents', 'publish', aid], {
    schema: d.agentPublish.output,
    text: /^Published with seq \d+/,
    quiet: SEQ,
  });
  await step(here, ['agents', 'heartbeat', aid], {
    schema: d.agentHeartbeat.output,
    text: /^OK, \d{4}-/,
    quiet: /^\d{4}-\S+Z$/,
  });
  await step(here, ['agents', 'probe', aid], {
    schema: d.agentProbe.output,
    text: /^service: +\S+:\d+ responds in/,
    quiet: /^ok$/,
  });
  await step(here, ['agents', 'topic', 'add', aid, 'lang.detect'], {
    schema: d.serviceRegister.output,
    text: /^Published the record, stored at 1 node\.$/,
    quiet: SEQ,
  });
  await step(here, ['agents', 'topic', 'list', aid], {
    schema: d.servicesList.output,
    text: /^SERVICE +NAME[^]*\nlang\.detect/,
    quiet: /^lang\.detect$/,
  });
  await step(here, ['agents', 'topic', 'rm', aid, 'lang.detect'], {
    schema: Ok,
    text: /no longer renewed/,
    quiet: /^lang\.detect$/,
  });
  const profiled = { schema: d.profileSet.output, text: /^Published the record, stored at 1 node\.$/, quiet: SEQ };
  await step(here, ['agents', 'profile', 'set', aid, '--name', 'Walker', '--skill', 'walk'], profiled);
  await step(here, ['agents', 'profile', 'clear', aid, '-y'], profiled);
  const card = join(directory, 'agent-card.json');
  writeFileSync(card, JSON.stringify({ name: 'Walker', description: 'Walks.', url: '/a2a', skills: [{ id: 'walk' }] }));
  const hash = /^[0-9a-f]{64}$/;
  await step(here, ['agents', 'card', 'set', aid, card], {
    schema: d.cardSet.output,
    text: /^The a2a card is signed/,
    quiet: hash,
  });
  await step(here, ['agents', 'card', 'get', aid], { schema: d.cardGet.output, text: /"signatures"/, quiet: hash });
  await step(here, ['card', aid, '--local-aid', aid], { schema: d.card.output, text: /^aid: +aid1/, quiet: hash });
  await step(here, ['agents', 'card', 'rm', aid, '-y'], {
    schema: Ok,
    text: /no longer names a card/,
    quiet: ONE_AID,
  });
  const moving = await there.newAgent();
  const file = join(directory, 'agent');
  await step(there, ['agents', 'export', moving, '-o', file], {
    schema: Type.Object({ aid: AidText, file: Type.String(), size: Type.Integer(), sealed: Type.Boolean() }),
    text: /^Wrote/,
    quiet: /agent$/,
  });
  await step(there, ['agents', 'rm', moving, '-y'], { schema: Ok, text: /is unregistered/, quiet: ONE_AID });
  await step(here, ['agents', 'import', file], {
    schema: d.agentImport.output,
    text: /^aid: +aid1/,
    quiet: ONE_AID,
  });
}

async function accessCommands(step: Step, { here }: WalkWorld, aid: string, peer: string): Promise<void> {
  const acl = (...args: string[]): string[] => ['agents', 'acl', ...args];
  const made = { text: /^\S+ may (not )?(call \S+|administer this node)\.$/, quiet: ID };
  await step(here, acl('allow', aid, peer), { schema: d.aclAllow.output, ...made });
  await step(here, acl('deny', aid, peer), { schema: d.aclDeny.output, ...made });
  const lists = await here.call<{ allow: { id: string }[]; deny: { id: string }[] }>('GET', `/agents/${aid}/acl`);
  await step(here, acl('show', aid), {
    schema: d.aclGet.output,
    text: /^Everyone may call, except denied/,
    quiet: /^public$/,
  });
  await step(here, acl('rm', aid, 'allow', lists.allow[0]?.id ?? '', '-y'), { schema: Ok, text: /^ok$/, quiet: ID });
  await step(here, acl('rm', aid, 'deny', lists.deny[0]?.id ?? '', '-y'), { schema: Ok, text: /^ok$/, quiet: ID });
  await step(here, acl('default', aid, 'deny'), { schema: Ok, text: /^Default: deny/, quiet: /^deny$/ });

  const state = d.remoteAdminGet.output;
  await step(here, ['admin', 'on'], { schema: state, text: /administration is on/, quiet: /^on$/ });
  await step(here, ['admin', 'allow', peer], { schema: d.remoteAdminAllow.output, ...made });
  await step(here, ['admin', 'deny', peer], { schema: d.remoteAdminDeny.output, ...made });
  const admin = await here.call<typeof lists>('GET', '/node/remote-admin');
  await step(here, ['admin', 'rm', 'allow', admin.allow[0]?.id ?? '', '-y'], { schema: Ok, text: /^ok$/, quiet: ID });
  await step(here, ['admin', 'rm', 'deny', admin.deny[0]?.id ?? '', '-y'], { schema: Ok, text: /^ok$/, quiet: ID });
  const password = { schema: Type.Object({ ok: Type.Literal(true), password: Type.Boolean() }) };
  const secret = 'a password of some length\n';
  await step(here, ['admin', 'password'], { ...password, text: /is set/, quiet: /^on$/, input: secret });
  await step(here, ['admin', 'password', 'off'], { ...password, text: /is removed/, quiet: /^off$/ });
  await step(here, ['admin', 'status'], { schema: state, text: /administration is on/, quiet: /^on$/ });
  await step(here, ['admin', 'audit'], { schema: d.remoteAdminAudit.output, text: SOME, quiet: ANY });
  await step(here, ['admin', 'off'], { schema: state, text: /administration is off/, quiet: /^off$/ });

  const named = Type.Object({ ok: Type.Literal(true), label: Type.String() });
  await step(here, ['alias', 'add', 'bob', peer], { schema: named, text: /^bob is aid1/, quiet: ONE_AID });
  await step(here, ['alias', 'list'], {
    schema: Type.Object({ aliases: d.addressBookGet.output.properties.aliases }),
    text: /^LABEL +AID\nbob +aid1/,
    quiet: /^bob$/,
  });
  await step(here, ['alias', 'rm', 'bob'], { schema: named, text: /^Deleted the label/, quiet: /^bob$/ });
}

const Served = {
  aid: AidText,
  name: Type.Optional(Type.String()),
  service_tcp: Type.String(),
  service_tcp_ok: Type.Boolean(),
  published: Type.Boolean(),
};

async function serveCommands(step: Step, { here, service }: WalkWorld, aid: string): Promise<void> {
  await step(here, ['serve', service, '--aid', aid, '--name', 'demo'], {
    schema: Type.Object({ ...Served, replicas: Type.Integer() }),
    text: /^name: +demo\nserves: +127\.0\.0\.1:\d+ \(responds\)\naid: +aid1/,
    quiet: ONE_AID,
  });
  await step(here, ['serve'], {
    schema: Type.Object({ served: Type.Array(Type.Object(Served)) }),
    text: /^NAME +SERVES[^]*\ndemo +127\.0\.0\.1/,
    quiet: AIDS,
  });
  await step(here, ['serve', '--off', '--name', 'DEMO'], {
    schema: Type.Object(Served),
    text: /no longer serves anything/,
    quiet: ONE_AID,
  });
  await here.call('PATCH', `/agents/${aid}`, { service_tcp: service });
  await here.call('PUT', '/node/address-book', { aliases: {}, favorites: [] });
}

async function callCommands(step: Step, { here, there }: WalkWorld, aid: string, peer: string): Promise<void> {
  const published = { schema: d.serviceRegister.output, text: /^Published .*stored at/, quiet: SEQ };
  await step(there, ['publish', 'lang.translate', '--aid', peer, '--brief', 'Translates', '-y'], published);
  await step(here, ['search', 'lang.translate'], {
    schema: d.discover.output,
    text: /^AID +SERVICE[\s\S]*lang\.translate +Translates/,
    quiet: AIDS,
  });
  await step(here, ['resolve', peer], { schema: d.resolve.output, text: /^aid: +aid1/, quiet: /^quic:\/\// });
  await step(here, ['info', peer], { schema: Info, text: /records: +0x/, quiet: ONE_AID });
  await step(here, ['did', peer], {
    schema: d.did.output,
    text: /^aid: +aid1[\s\S]*did: +did:key:z6Mk/,
    quiet: /^did:key:z6Mk/,
  });
  await step(here, ['did-document', peer], {
    schema: d.didDocument.output,
    text: /^\{\n {2}"@context"[\s\S]*quic:/,
    quiet: /^did:key:z6Mk/,
  });
  await step(here, ['netcheck', peer], {
    schema: d.netcheckAgent.output,
    text: /^agent: +aid1[\s\S]*PATH +AFTER/,
    quiet: /^(lan|none)$/,
  });
  await step(here, ['ping', peer, '-c', '2', '--interval', '0.1'], {
    schema: d.pingAgent.output,
    text: /^1: [\d.]+ ms, lan, 127[\s\S]*\n2 probes, 2 answers, 0 % lost, min/,
    quiet: /^lan [\d.]+$/,
  });
  await step(there, ['unpublish', 'lang.translate', '--aid', peer], {
    schema: Ok,
    text: /no longer renewed/,
    quiet: /^lang\.translate$/,
  });
  const answer = { schema: d.fetch.output, text: /"url":"\/hello"/, quiet: /"url":"\/hello"/ };
  await step(here, ['get', peer, '/hello', '--local-aid', aid], answer);
  await step(here, ['post', peer, '/hello', '-d', '{}', '--local-aid', aid], answer);
  await step(there, ['access', 'confirm'], {
    schema: d.accessConfirm.output,
    text: /^The agents were not closed\.$/,
    quiet: /^ok$/,
  });
  await step(there, ['callers', '--aid', peer], {
    schema: d.agentCallers.output,
    text: /^CALLER +LAST[^]*\naid1\w+… +\d+ s ago +\d+ +0 +0 +0 +yes/,
    quiet: AIDS,
  });
  await here.call('POST', `/traces/next/${peer}`);
  await step(here, ['get', peer, '/hello', '--local-aid', aid], answer);
  await step(here, ['trace'], { schema: d.traceList.output, text: /^TRACE +STARTED[^]*GET/, quiet: /^[0-9a-f\n]+$/ });
  const { traces } = await here.call<{ traces: { trace_id: string }[] }>('GET', '/traces');
  await step(here, ['trace', traces[0]?.trace_id ?? ''], {
    schema: d.traceGet.output,
    text: /^SPAN +AGENT[^]*wait/,
    quiet: /^[0-9a-f]{32}$/,
  });
  await step(here, ['trace', '--next', peer], {
    schema: d.traceNext.output,
    text: /^The next call to .* is traced\. Show it: svc trace$/,
    quiet: /^$/,
  });
  await there.call('PATCH', `/agents/${peer}/acl`, { default: 'ask' });
  const asked = async (): Promise<string> => {
    const pending = await here.request('POST', `/fetch/${peer}`, { path: '/', local_aid: aid, note: 'hello' });
    return pending.headers.get('svc-access-request') ?? '';
  };
  const refused = await asked();
  await step(there, ['access', 'requests'], {
    schema: d.accessRequests.output,
    text: /^ID +CALLER[^]*call GET \/[^]*"hello"/,
    quiet: ID,
  });
  await step(there, ['access', 'refuse', refused], { schema: Ok, text: /^Refused\.$/, quiet: ID });
  const { deny } = await there.call<{ deny: { id: string }[] }>('GET', `/agents/${peer}/acl`);
  await there.call('DELETE', `/agents/${peer}/acl/deny/${deny[0]?.id}`);
  await step(there, ['access', 'allow', await asked(), '--once'], {
    schema: Ok,
    text: /^Allowed once: one call with this method and path/,
    quiet: ID,
  });
  await there.call('PATCH', `/agents/${peer}/acl`, { default: 'public' });
  const tunnel = { text: /listens on 127/, quiet: ADDRESS };
  await step(here, ['connect', peer, '--local-aid', aid], {
    schema: d.connect.output,
    text: /^Connect to 127/,
    quiet: ADDRESS,
  });
  await step(here, ['tunnel', 'open', peer, '--local-aid', aid], { schema: d.tunnelOpen.output, ...tunnel });
  await step(here, ['open', peer, '/hello', '--local-aid', aid], {
    schema: Type.Object({ url: Type.String(), origin_id: Type.String(), opened: Type.Boolean() }),
    text: /^(Opened )?http:\/\/127/,
    quiet: /^http:\/\/127\.0\.0\.1:\d+\/hello$/,
  });
  await step(here, ['entry'], { schema: d.entryShow.output, text: /^This node is no entry/, quiet: /^$/ });
  await step(here, ['entry', 'list'], { schema: d.entryShow.output, text: /^No public names/, quiet: /^$/ });
  await step(here, ['expose', 'list'], { schema: d.exposureList.output, text: /^No public addresses/, quiet: /^$/ });
  const url = /^http:\/\/127\.0\.0\.1:\d+$/;
  await step(here, ['origin', 'open', peer, '--local-aid', aid], {
    schema: d.originOpen.output,
    text: /^http:\/\/127[\s\S]* now leads to this agent/,
    quiet: url,
  });
  await step(here, ['origin', 'list'], { schema: d.originList.output, text: /^ID +ADDRESS/, quiet: url });
  const {
    origins: [opened],
  } = await here.call<{ origins: { url: string }[] }>('GET', '/origins');
  await fetch(`${opened?.url ?? ''}/message:send`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ configuration: { taskPushNotificationConfig: { url: 'http://127.0.0.1:9/hook' } } }),
  });
  await step(here, ['push', 'list'], {
    schema: d.pushList.output,
    text: /^ID +FOR[\s\S]*127\.0\.0\.1:9\/hook/,
    quiet: ID,
  });
  const { webhooks } = await here.call<{ webhooks: { id: string }[] }>('GET', '/push');
  await step(here, ['push', 'rm', webhooks[0]?.id ?? ''], { schema: Ok, text: /^Deleted/, quiet: ID });
  const { origins } = await here.call<{ origins: { id: string }[] }>('GET', '/origins');
  await step(here, ['origin', 'rm', origins[0]?.id ?? ''], {
    schema: Ok,
    text: /^Closed the local address/,
    quiet: ID,
  });
  const { tunnels } = await here.call<{ tunnels: { id: string }[] }>('GET', '/tunnel');
  const id = tunnels[0]?.id ?? '';
  await step(here, ['tunnel', 'status'], { schema: d.tunnelList.output, text: /^ID +LISTEN/, quiet: ADDRESS });
  await step(here, ['tunnel', 'status', id], { schema: d.tunnelList.output, text: /^ID +LISTEN/, quiet: ADDRESS });
  await step(here, ['tunnel', 'reset', id], { schema: Ok, text: /^ok$/, quiet: ID });
  await step(here, ['tunnel', 'rm', id], { schema: Ok, text: /^ok$/, quiet: ID });
}

/** Commands that the walk omits, with the reason. */
export const NOT_WALKED: Readonly<Record<string, string>> = {
  stop: 'ends the daemon',
  restart: 'needs the installed service',
  completion: 'prints a program for a shell, whatever the way',
  uninstall: 'removes the installation: uninstall.test.ts',
  update: 'asks the registry of packages',
  backup: 'is about a data directory, not about a daemon',
  restore: 'is about a data directory, not about a daemon',
  'wallet register': 'needs the signature of a wallet',
  'mcp share': 'runs until it is stopped',
  'mcp use': 'needs a shared server',
  run: 'prints nothing: test/e2e/run.test.ts',
  'mcp hub accept': 'needs a definition that waits: mcp-hub.test.ts',
  'mcp hub refuse': 'needs a definition that waits: mcp-hub.test.ts',
  'entry allow': 'needs an entry',
  'entry deny': 'needs an entry',
  'entry rm': 'needs an entry',
  'expose off': 'needs an entry',
  'expose token add': 'needs an entry',
  'expose token rm': 'needs an entry',
  'hooks retry': 'needs a delivery that failed eight times',
  'note unqueue': 'needs a note that no other node has',
  nc: 'copies bytes in every output format',
  ssh: 'runs another program',
  use: 'is about the data directory of the daemon here',
  whoami: 'answers for the one agent that was chosen, or the only one',
};

/** Runs all commands. It creates new agents, so that the walk can be repeated on a daemon. */
export async function walk(step: Step, world: WalkWorld): Promise<void> {
  const { here, there, service } = world;
  const aid = await here.newAgent(service);
  const peer = await there.newAgent(service);
  for (const [at, one] of [
    [here, aid],
    [there, peer],
  ] as const)
    await at.call('POST', `/agents/${one}/publish`);
  await nodeCommands(step, world);
  await joiningCommands(step, world);
  await identityCommands(step, world);
  await agentCommands(step, world, aid);
  await serveCommands(step, world, aid);
  await callCommands(step, world, aid, peer);
  await messageCommands(step, world, aid, peer);
  await hookCommands(step, world, aid, peer);
  await hubCommands(step, world, aid, peer);
  await groupCommands(step, world, aid, peer);
  await objectCommands(step, world, aid);
  await fileCommands(step, world, aid, peer);
  await accessCommands(step, world, aid, peer);
}
