/**
 * Push notifications of A2A through two daemons in two processes: the official client names a webhook of its own machine,
 * and the official server reaches it, also where somebody was away or was killed meanwhile.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { SendMessageRequest, TaskPushNotificationConfig } from '@a2a-js/sdk';
import { type Client, ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';
import { memberOf } from '../../src/foundation/json.ts';
import { A2aPushAgent } from '../support/a2a-push-agent.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Mortal } from '../support/mortal.ts';
import { quietPort } from '../support/programs.ts';
import { WebhookProgram } from '../support/webhook-program.ts';

interface PushView {
  readonly webhooks: readonly { id: string; url: string; waiting: number; taken: number; last_error?: string }[];
  readonly mailboxes: readonly { id: string; waiting: number }[];
}

let serial = 0;

function sending(url: string, token = 'of this task') {
  return SendMessageRequest.fromJSON({
    message: { messageId: `m${++serial}`, role: 'ROLE_USER', parts: [{ text: 'begin' }] },
    configuration: { returnImmediately: true, taskPushNotificationConfig: { id: 'c1', url, token } },
  });
}

/** Posts as any program does; the status. */
function post(url: string, body: string, headers: Record<string, string> = {}, method = 'POST'): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { method, headers: { 'content-type': 'application/json', ...headers } },
      (answer) => resolve(answer.resume().statusCode ?? 0),
    );
    request.on('error', reject).end(body);
  });
}

describe('push notifications', () => {
  let hub: TestDaemon;
  let near: Mortal;
  let far: Mortal;
  let agent: A2aPushAgent;
  let hook: WebhookProgram;
  let aid: string;
  let caller: string;
  let url: string;
  let client: Client;

  before(async () => {
    agent = await A2aPushAgent.start();
    hook = new WebhookProgram();
    await hook.come();
    hub = await TestDaemon.start();
    far = await Mortal.start(hub.dhtAddress);
    near = await Mortal.start(hub.dhtAddress);
    aid = await far.daemon.newAgent(`127.0.0.1:${agent.port}`);
    await far.daemon.call('POST', `/agents/${aid}/publish`);
    caller = await near.daemon.newAgent();
    await near.daemon.call('POST', `/agents/${caller}/publish`);
    // It comes back at this port: nobody else may have got it meanwhile.
    const at = { local_port: await quietPort() };
    ({ url } = await near.daemon.call<{ url: string }>('POST', `/origins/${aid}`, at));
    client = await new ClientFactory({ transports: [new JsonRpcTransportFactory()] }).createFromUrl(url);
  });

  after(async () => {
    await Promise.all([near.stop(), far.stop(), hub.stop(), hook.go()]);
    agent.stop();
  });

  /** Begins a task with a webhook; its id. */
  async function begin(path: string, by: Pick<Client, 'sendMessage'> = client): Promise<string> {
    const task = await by.sendMessage(sending(hook.url(path)));
    assert.ok('id' in task);
    return task.id;
  }

  const pushOf = (mortal: Mortal): Promise<PushView> => mortal.daemon.call<PushView>('GET', '/push');

  /** The mailbox's address of the webhook that was registered last. */
  function lastAddress(): string {
    const address = [...agent.webhooks].at(-1);
    assert.ok(address !== undefined);
    return address;
  }

  test('of 1.0 come to the webhook of the client, in order, with what it asked for', async () => {
    const taskId = await begin('/one');
    const texts = Array.from({ length: 20 }, (_, i) => `step ${i}`);
    for (const text of texts) agent.say(taskId, text);
    agent.say(taskId, 'done', true);
    await eventually('the last step', () => hook.texts('/one').includes('done'));
    assert.deepEqual(hook.texts('/one'), [...texts, 'done']);
    for (const { headers } of hook.at('/one')) {
      assert.equal(headers['x-a2a-notification-token'], 'of this task');
      assert.equal(headers['content-type'], 'application/a2a+json');
      assert.equal(headers['svc-caller-aid'], aid);
      assert.equal(headers['svc-local-aid'], caller);
    }
    const ids = hook.at('/one').map(({ headers }) => headers['svc-notification-id']);
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(!lastAddress().startsWith(hook.url('')), 'the server never sees the address of the client');
  });

  test('a configuration shows the own address of the client, and ends what it began when it is deleted', async () => {
    const taskId = await begin('/two');
    const id = 'c2';
    const config = TaskPushNotificationConfig.fromJSON({
      taskId,
      id,
      url: hook.url('/two-b?key=secret'),
      authentication: { scheme: 'Bearer', credentials: 'of the program' },
    });
    const made = await client.createTaskPushNotificationConfig(config);
    assert.equal(made.url, hook.url('/two-b?key=secret'));
    const address = lastAddress();
    const shown = await client.getTaskPushNotificationConfig({ tenant: '', taskId, id });
    assert.equal(shown.url, hook.url('/two-b?key=secret'));
    const list = await client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' });
    assert.deepEqual(
      list.configs.map((one) => one.url).sort(),
      [hook.url('/two'), hook.url('/two-b?key=secret')].sort(),
    );
    agent.say(taskId, 'for both');
    await eventually('both hear of it', () =>
      [hook.texts('/two'), hook.texts('/two-b?key=secret')].every((t) => t.length > 0),
    );
    assert.equal(hook.at('/two-b?key=secret').at(-1)?.headers.authorization, 'Bearer of the program');
    assert.ok(
      (await pushOf(near)).webhooks.some((one) => one.url === hook.url('/two-b')),
      'without its query',
    );
    await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id });
    assert.ok(!(await pushOf(near)).webhooks.some((one) => one.url === hook.url('/two-b')));
    const before = hook.at('/two-b?key=secret').length;
    assert.equal(await post(address, '{"text":"late"}'), 202);
    agent.say(taskId, 'for one');
    await eventually('the other one hears of it', () => hook.texts('/two').includes('for one'));
    await eventually('nothing waits', async () => (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0));
    assert.equal(hook.at('/two-b?key=secret').length, before, 'nobody calls what is deleted');
    agent.say(taskId, 'done', true);
  });

  test('is known in a call whose length nobody says, too', async () => {
    const before = agent.webhooks.size;
    const params = SendMessageRequest.toJSON(sending(hook.url('/in-parts')));
    const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0', 'transfer-encoding': 'chunked' };
    const request = httpRequest(`${url}/rpc`, { method: 'POST', headers });
    request.write(call.slice(0, 40));
    request.end(call.slice(40));
    const [answer]: IncomingMessage[] = await once(request, 'response');
    assert.equal(answer?.resume().statusCode, 200);
    await eventually('it begins', () => hook.at('/in-parts').length === 1);
    assert.equal(agent.webhooks.size, before + 1);
    assert.ok(!agent.webhooks.has(hook.url('/in-parts')));
  });

  test('is no more where the server refuses what named it', async () => {
    const refused = async (method: string, path: string, params: object): Promise<void> => {
      const call = { jsonrpc: '2.0', id: 1, method, params };
      const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
      const answer = await fetch(`${url}/rpc`, { method: 'POST', headers, body: JSON.stringify(call) });
      assert.equal(answer.status, 200);
      assert.ok(memberOf(await answer.json(), 'error') !== undefined, method);
      const { webhooks } = await pushOf(near);
      assert.ok(!webhooks.some((one) => one.url === hook.url(path)), method);
    };
    const { configuration } = sending(hook.url('/refused'));
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], taskId: 'no such task' };
    await refused('SendMessage', '/refused', { message, configuration });
    await refused('CreateTaskPushNotificationConfig', '/refused-b', {
      taskId: 'no such task',
      id: 'c',
      url: hook.url('/refused-b'),
    });
  });

  test('of 0.3 come as that has them, and so do those of HTTP+JSON', async () => {
    const old = new LegacyJsonRpcTransport({ endpoint: `${url}/old` });
    const taskId = await begin('/old', old);
    agent.say(taskId, 'as of old');
    await eventually('it comes', () => hook.texts('/old').includes('as of old'));
    const got = hook.at('/old').find(({ body }) => body.includes('as of old'));
    assert.match(got?.body ?? '', /"kind":/);
    const made = await old.createTaskPushNotificationConfig(
      TaskPushNotificationConfig.fromJSON({ taskId, id: 'c3', url: hook.url('/old-b') }),
    );
    assert.equal(made.url, hook.url('/old-b'));
    const { webhooks } = await pushOf(near);
    assert.ok(webhooks.some((one) => one.url === hook.url('/old-b')));
    await old.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'c3' });
    assert.ok(!(await pushOf(near)).webhooks.some((one) => one.url === hook.url('/old-b')));
    agent.say(taskId, 'done', true);

    const rest = await new ClientFactory({
      transports: [new RestTransportFactory()],
      preferredTransports: ['HTTP+JSON'],
    }).createFromUrl(url);
    const restTask = await begin('/rest', rest);
    agent.say(restTask, 'over REST');
    await eventually('it comes', () => hook.texts('/rest').includes('over REST'));
    const config = TaskPushNotificationConfig.fromJSON({ taskId: restTask, id: 'c4', url: hook.url('/rest-b') });
    assert.equal((await rest.createTaskPushNotificationConfig(config)).url, hook.url('/rest-b'));
    assert.ok((await pushOf(near)).webhooks.some((one) => one.url === hook.url('/rest-b')));
    assert.notEqual(lastAddress(), hook.url('/rest-b'));
    const asked = { tenant: '', taskId: restTask, id: 'c4' };
    assert.equal((await rest.getTaskPushNotificationConfig(asked)).url, hook.url('/rest-b'));
    await rest.deleteTaskPushNotificationConfig(asked);
    assert.ok(!(await pushOf(near)).webhooks.some((one) => one.url === hook.url('/rest-b')));
    agent.say(restTask, 'done', true);
  });

  test('wait for the daemon of the client, and for its program, and come once', async () => {
    const taskId = await begin('/away');
    await eventually('it begins', () => hook.at('/away').length === 1);
    // The webhook hears of it before both daemons have written down that it did.
    await eventually('nothing waits', async () => {
      const { webhooks } = await pushOf(near);
      const { mailboxes } = await pushOf(far);
      return [...webhooks, ...mailboxes].every(({ waiting }) => waiting === 0);
    });
    await near.daemon.kill('SIGKILL');
    agent.say(taskId, 'while the daemon is away');
    await eventually('it is kept', async () => (await pushOf(far)).mailboxes[0]?.waiting === 1);
    await far.die();
    await hook.go();
    await near.die();
    await eventually('it is handed over', async () =>
      (await pushOf(near)).webhooks.some(({ waiting }) => waiting === 1),
    );
    await eventually('it waits there alone', async () => (await pushOf(far)).mailboxes[0]?.waiting === 0);
    await near.die();
    await hook.come();
    await eventually('it comes', () => hook.texts('/away').length > 0);
    agent.say(taskId, 'done', true);
    await eventually('the last one', () => hook.texts('/away').includes('done'));
    assert.deepEqual(hook.texts('/away'), ['while the daemon is away', 'done']);
  });

  test('are not lost and stay in order where both daemons are killed meanwhile', async () => {
    await begin('/killed');
    const address = lastAddress();
    const count = 60;
    const kills = (async () => {
      for (const [i, side] of [near, far].entries()) {
        await eventually('some came', () => hook.at('/killed').length > (i + 1) * 15);
        await side.die();
      }
    })();
    for (let n = 0; n < count; n++) {
      // As a server does that repeats what was not taken.
      await eventually(
        `${n} is taken`,
        async () => (await post(address, JSON.stringify({ n })).catch(() => 0)) === 202,
      );
    }
    await kills;
    const numbers = () =>
      hook
        .at('/killed')
        .flatMap(({ body }) => /^\{"n":(\d+)\}$/.exec(body)?.[1] ?? [])
        .map(Number);
    await eventually('the last one', () => numbers().includes(count - 1));
    const first = [...new Set(numbers())];
    assert.deepEqual(
      first,
      Array.from({ length: count }, (_, n) => n),
      'each of them, in order',
    );
    const ids = hook.at('/killed').map(({ headers }) => String(headers['svc-notification-id']));
    // Only one that was on its way to the webhook when the daemon beside it was killed may come again.
    assert.ok(ids.length - new Set(ids).size <= 1, `${ids.length - new Set(ids).size} came again`);
  });

  test('the attack table: nobody posts where he has no business', async () => {
    const attacked = await begin('/attacked');
    await eventually('it begins', () => hook.at('/attacked').length === 1);
    const address = lastAddress();
    const [, token = '', name = ''] = new URL(address).pathname.split('/');
    const { origin } = new URL(address);
    const refusals: [string, Promise<number>, number][] = [
      ['a page', post(address, '{}', { origin: 'http://evil.example' }), 403],
      ['a page of this machine', post(address, '{}', { 'sec-fetch-site': 'same-site' }), 403],
      ['a name that leads here', post(address, '{}', { host: 'evil.example' }), 403],
      ['another token', post(`${origin}/${token.slice(1)}x/${name}`, '{}'), 404],
      ['a webhook of no form', post(`${origin}/${token}/..%2f..`, '{}'), 404],
      ['a longer path', post(`${address}/more`, '{}'), 404],
      ['another method', post(address, '', {}, 'GET'), 405],
      ['too much', post(address, 'x'.repeat(1024 * 1024 + 1)).catch(() => 413), 413],
      ['a proxy', post(`${origin}/http://127.0.0.1:${hook.port}/attacked`, '{}'), 404],
    ];
    for (const [what, status, expected] of refusals) assert.equal(await status, expected, what);

    const body = (webhook: string) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: { messageId: `m${++serial}`, role: 'ROLE_USER', parts: [{ text: 'begin' }] },
        configuration: { returnImmediately: true, taskPushNotificationConfig: { url: webhook } },
      },
    });
    const name1 = (webhook: string, headers: Record<string, string> = {}) =>
      post(`${url}/rpc`, JSON.stringify(body(webhook)), { 'a2a-version': '1.0', ...headers });
    const page = { 'sec-fetch-site': 'same-origin', origin: url };
    assert.equal(await name1(hook.url('/attacked'), page), 403, 'a page of the agent names a webhook here');
    const shows = async (headers: Record<string, string>): Promise<string> => {
      const call = {
        jsonrpc: '2.0',
        id: 1,
        method: 'GetTaskPushNotificationConfig',
        params: { taskId: attacked, id: 'c1' },
      };
      let answered = '';
      const type = { 'content-type': 'application/json', 'a2a-version': '1.0' };
      const request = httpRequest(`${url}/rpc`, { method: 'POST', headers: { ...type, ...headers } });
      request.end(JSON.stringify(call));
      const [answer]: IncomingMessage[] = await once(request, 'response');
      for await (const chunk of answer ?? []) answered += String(chunk);
      return answered;
    };
    assert.ok((await shows({})).includes(hook.url('/attacked')));
    assert.ok((await shows(page)).includes(address), 'a page of the agent does not learn where webhooks here are');
    assert.equal(await name1('http://169.254.169.254/latest/meta-data'), 400, 'a service of metadata');
    assert.equal(await name1('http://[fe80::1]/'), 400, 'a link-local address');
    assert.equal(await name1('http://u:p@127.0.0.1/'), 400, 'a password in an address');
    assert.equal(await name1('https://hooks.example.com/x'), 200, 'a public one goes on');
    assert.equal(lastAddress(), 'https://hooks.example.com/x');

    const api = near.daemon.api;
    assert.equal(await name1(`${api}/node/stop`), 200);
    await post(lastAddress(), '{}');
    await eventually('it is refused', async () =>
      (await pushOf(near)).webhooks.some((one) => one.url.startsWith(api) && one.last_error !== undefined),
    );
    assert.equal((await near.daemon.request('GET', '/status')).status, 200);
    assert.equal(await name1(`${url}/rpc`), 200);
    await eventually('an address of an agent is no webhook', async () =>
      (await pushOf(near)).webhooks.some((one) => one.url.startsWith(url) && one.last_error !== undefined),
    );

    hook.status = 307;
    hook.location = hook.url('/elsewhere');
    await post(address, '{"text":"on"}');
    await eventually('it is answered', () => hook.texts('/attacked').includes('on'));
    hook.status = 200;
    hook.location = null;
    await eventually('it is taken', async () =>
      (await pushOf(near)).webhooks.some((one) => one.url === hook.url('/attacked') && one.waiting === 0),
    );
    assert.equal(hook.at('/elsewhere').length, 0, 'redirects are not followed');
  });

  test('another agent cannot use the address of a webhook, and who is shut out ends', async () => {
    await begin('/shut');
    await eventually('it begins', () => hook.at('/shut').length === 1);
    const address = lastAddress();
    const name = new URL(address).pathname.split('/')[2] ?? '';
    const other = await far.daemon.newAgent(`127.0.0.1:${agent.port}`);
    await far.daemon.call('POST', `/agents/${other}/publish`);
    const opened = await near.daemon.call<{ id: string; url: string }>('POST', `/origins/${other}`);
    const otherClient = await new ClientFactory({ transports: [new JsonRpcTransportFactory()] }).createFromUrl(
      opened.url,
    );
    await begin('/other', otherClient);
    await eventually('it begins', () => hook.at('/other').length === 1);
    const [, token = ''] = new URL(lastAddress()).pathname.split('/');
    const before = hook.at('/shut').length;
    assert.equal(await post(`${new URL(address).origin}/${token}/${name}`, '{"text":"stolen"}'), 202);
    await eventually('it is dropped', async () => (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0));
    assert.equal(hook.at('/shut').length, before);

    const otherAddress = lastAddress();
    await near.daemon.call('DELETE', `/origins/${opened.id}`);
    assert.equal(await post(otherAddress, '{"text":"closed"}'), 202);
    await eventually('it is dropped', async () => (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0));
    assert.ok(!hook.texts('/other').includes('closed'));

    await near.daemon.call('POST', `/agents/${caller}/acl/deny`, { aid });
    assert.equal(await post(address, '{"text":"denied"}'), 202);
    await eventually('it is dropped', async () => (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0));
    assert.ok(!hook.texts('/shut').includes('denied'));
    await far.daemon.call('POST', `/agents/${aid}/acl/deny`, { aid: caller });
    assert.equal(await post(address, '{}'), 404, 'the mailbox is gone');
    for (const secret of [token, new URL(address).pathname.split('/')[1] ?? '', 'of this task'])
      for (const { daemon } of [near, far]) assert.ok(!daemon.output.includes(secret), 'no secret in a log');
    assert.ok(memberOf(await pushOf(far), 'mailboxes') !== undefined);
  });
});
