/**
 * A2A push notifications through two daemons in two processes: the official client registers a webhook on its machine, and the official server reaches it, even if a side was offline or killed meanwhile.
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

function webhookConfig(url: string, token = 'of this task') {
  return SendMessageRequest.fromJSON({
    message: { messageId: `m${++serial}`, role: 'ROLE_USER', parts: [{ text: 'begin' }] },
    configuration: { returnImmediately: true, taskPushNotificationConfig: { id: 'c1', url, token } },
  });
}

/** Posts as any program does, and returns the status. */
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
    // The daemon restarts at this port, so no other process may get it meanwhile.
    const at = { local_port: await quietPort() };
    ({ url } = await near.daemon.call<{ url: string }>('POST', `/origins/${aid}`, at));
    client = await new ClientFactory({ transports: [new JsonRpcTransportFactory()] }).createFromUrl(url);
  });

  after(async () => {
    await Promise.all([near.stop(), far.stop(), hub.stop(), hook.go()]);
    agent.stop();
  });

  /** Starts a task with a webhook, and returns its id. */
  async function begin(path: string, by: Pick<Client, 'sendMessage'> = client): Promise<string> {
    const task = await by.sendMessage(webhookConfig(hook.url(path)));
    assert.ok('id' in task);
    return task.id;
  }

  const pushOf = (mortal: Mortal): Promise<PushView> => mortal.daemon.call<PushView>('GET', '/push');

  /** The webhook URL that the server received last. */
  function lastAddress(): string {
    const address = [...agent.webhooks].at(-1);
    assert.ok(address !== undefined);
    return address;
  }

  test('of 1.0 arrive at the webhook of the client, in order, with its token', async () => {
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

  test("a configuration contains the client's original URL, and deleting it stops the notifications", async () => {
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
    await eventually('both webhooks are notified', () =>
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
    await eventually('the other webhook is notified', () => hook.texts('/two').includes('for one'));
    await eventually('no notification is pending', async () =>
      (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0),
    );
    assert.equal(hook.at('/two-b?key=secret').length, before, 'a deleted webhook receives no notification');
    agent.say(taskId, 'done', true);
  });

  test('a webhook is found in a call of unknown length', async () => {
    const before = agent.webhooks.size;
    const params = SendMessageRequest.toJSON(webhookConfig(hook.url('/in-parts')));
    const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0', 'transfer-encoding': 'chunked' };
    const request = httpRequest(`${url}/rpc`, { method: 'POST', headers });
    request.write(call.slice(0, 40));
    request.end(call.slice(40));
    const [answer]: IncomingMessage[] = await once(request, 'response');
    assert.equal(answer?.resume().statusCode, 200);
    await eventually('the task begins', () => hook.at('/in-parts').length === 1);
    assert.equal(agent.webhooks.size, before + 1);
    assert.ok(!agent.webhooks.has(hook.url('/in-parts')));
  });

  test('a webhook is dropped if the server refuses the call that registered it', async () => {
    const refused = async (method: string, path: string, params: object): Promise<void> => {
      const call = { jsonrpc: '2.0', id: 1, method, params };
      const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
      const answer = await fetch(`${url}/rpc`, { method: 'POST', headers, body: JSON.stringify(call) });
      assert.equal(answer.status, 200);
      assert.ok(memberOf(await answer.json(), 'error') !== undefined, method);
      const { webhooks } = await pushOf(near);
      assert.ok(!webhooks.some((one) => one.url === hook.url(path)), method);
    };
    const { configuration } = webhookConfig(hook.url('/refused'));
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], taskId: 'no such task' };
    await refused('SendMessage', '/refused', { message, configuration });
    await refused('CreateTaskPushNotificationConfig', '/refused-b', {
      taskId: 'no such task',
      id: 'c',
      url: hook.url('/refused-b'),
    });
  });

  test('of 0.3 arrive in the format of 0.3, also over HTTP+JSON', async () => {
    const old = new LegacyJsonRpcTransport({ endpoint: `${url}/old` });
    const taskId = await begin('/old', old);
    agent.say(taskId, 'as of old');
    await eventually('the notification arrives', () => hook.texts('/old').includes('as of old'));
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
    await eventually('the notification arrives', () => hook.texts('/rest').includes('over REST'));
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

  test('wait for the daemon of the client, and for its program, and arrive once', async () => {
    const taskId = await begin('/away');
    await eventually('the task begins', () => hook.at('/away').length === 1);
    // The webhook is notified before both daemons have stored that it was.
    await eventually('no notification is pending', async () => {
      const { webhooks } = await pushOf(near);
      const { mailboxes } = await pushOf(far);
      return [...webhooks, ...mailboxes].every(({ waiting }) => waiting === 0);
    });
    await near.daemon.kill('SIGKILL');
    agent.say(taskId, 'while the daemon is away');
    await eventually('the notification is stored', async () => (await pushOf(far)).mailboxes[0]?.waiting === 1);
    await far.die();
    await hook.go();
    await near.die();
    await eventually('the notification is transferred', async () =>
      (await pushOf(near)).webhooks.some(({ waiting }) => waiting === 1),
    );
    await eventually(
      "the notification is pending at the client's daemon only",
      async () => (await pushOf(far)).mailboxes[0]?.waiting === 0,
    );
    await near.die();
    await hook.come();
    await eventually('the notification arrives', () => hook.texts('/away').length > 0);
    agent.say(taskId, 'done', true);
    await eventually('the last one', () => hook.texts('/away').includes('done'));
    assert.deepEqual(hook.texts('/away'), ['while the daemon is away', 'done']);
  });

  test('are not lost and stay in order when both daemons are killed meanwhile', async () => {
    await begin('/killed');
    const address = lastAddress();
    const count = 60;
    const kills = (async () => {
      for (const [i, side] of [near, far].entries()) {
        await eventually('some arrived', () => hook.at('/killed').length > (i + 1) * 15);
        await side.die();
      }
    })();
    for (let n = 0; n < count; n++) {
      // Retries like a server whose notification was not accepted.
      await eventually(
        `${n} is accepted`,
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
      'all of them, in order',
    );
    const ids = hook.at('/killed').map(({ headers }) => String(headers['svc-notification-id']));
    // Only a notification in transit to the webhook when its daemon was killed may arrive again.
    assert.ok(ids.length - new Set(ids).size <= 1, `${ids.length - new Set(ids).size} arrived again`);
  });

  test('attack table: unauthorized posts are refused', async () => {
    const attacked = await begin('/attacked');
    await eventually('the task begins', () => hook.at('/attacked').length === 1);
    const address = lastAddress();
    const [, token = '', name = ''] = new URL(address).pathname.split('/');
    const { origin } = new URL(address);
    const refusals: [string, Promise<number>, number][] = [
      ['a page', post(address, '{}', { origin: 'http://evil.example' }), 403],
      ['a page of this machine', post(address, '{}', { 'sec-fetch-site': 'same-site' }), 403],
      ['a host name that resolves to this machine', post(address, '{}', { host: 'evil.example' }), 403],
      ['another token', post(`${origin}/${token.slice(1)}x/${name}`, '{}'), 404],
      ['an invalid webhook', post(`${origin}/${token}/..%2f..`, '{}'), 404],
      ['a longer path', post(`${address}/more`, '{}'), 404],
      ['another method', post(address, '', {}, 'GET'), 405],
      ['a body that is too large', post(address, 'x'.repeat(1024 * 1024 + 1)).catch(() => 413), 413],
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
    const registerWebhook = (webhook: string, headers: Record<string, string> = {}) =>
      post(`${url}/rpc`, JSON.stringify(body(webhook)), { 'a2a-version': '1.0', ...headers });
    const page = { 'sec-fetch-site': 'same-origin', origin: url };
    assert.equal(
      await registerWebhook(hook.url('/attacked'), page),
      403,
      'a page of the agent registers a webhook here',
    );
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
    assert.ok((await shows(page)).includes(address), 'a page of the agent cannot read the webhook URLs here');
    assert.equal(await registerWebhook('http://169.254.169.254/latest/meta-data'), 400, 'a metadata service');
    assert.equal(await registerWebhook('http://[fe80::1]/'), 400, 'a link-local address');
    assert.equal(await registerWebhook('http://u:p@127.0.0.1/'), 400, 'a password in an address');
    assert.equal(await registerWebhook('https://hooks.example.com/x'), 200, 'a public URL is allowed');
    assert.equal(lastAddress(), 'https://hooks.example.com/x');

    const api = near.daemon.api;
    assert.equal(await registerWebhook(`${api}/node/stop`), 200);
    await post(lastAddress(), '{}');
    await eventually('the webhook is refused', async () =>
      (await pushOf(near)).webhooks.some((one) => one.url.startsWith(api) && one.last_error !== undefined),
    );
    assert.equal((await near.daemon.request('GET', '/status')).status, 200);
    assert.equal(await registerWebhook(`${url}/rpc`), 200);
    await eventually('a local address of an agent is no webhook', async () =>
      (await pushOf(near)).webhooks.some((one) => one.url.startsWith(url) && one.last_error !== undefined),
    );

    hook.status = 307;
    hook.location = hook.url('/elsewhere');
    await post(address, '{"text":"on"}');
    await eventually('the webhook responds', () => hook.texts('/attacked').includes('on'));
    hook.status = 200;
    hook.location = null;
    await eventually('the notification is accepted', async () =>
      (await pushOf(near)).webhooks.some((one) => one.url === hook.url('/attacked') && one.waiting === 0),
    );
    assert.equal(hook.at('/elsewhere').length, 0, 'redirects are not followed');
  });

  test('another agent cannot use a webhook URL, and denying an agent drops its webhooks', async () => {
    await begin('/shut');
    await eventually('the task begins', () => hook.at('/shut').length === 1);
    const address = lastAddress();
    const name = new URL(address).pathname.split('/')[2] ?? '';
    const other = await far.daemon.newAgent(`127.0.0.1:${agent.port}`);
    await far.daemon.call('POST', `/agents/${other}/publish`);
    const opened = await near.daemon.call<{ id: string; url: string }>('POST', `/origins/${other}`);
    const otherClient = await new ClientFactory({ transports: [new JsonRpcTransportFactory()] }).createFromUrl(
      opened.url,
    );
    await begin('/other', otherClient);
    await eventually('the task begins', () => hook.at('/other').length === 1);
    const [, token = ''] = new URL(lastAddress()).pathname.split('/');
    const before = hook.at('/shut').length;
    assert.equal(await post(`${new URL(address).origin}/${token}/${name}`, '{"text":"stolen"}'), 202);
    await eventually('the notification is dropped', async () =>
      (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0),
    );
    assert.equal(hook.at('/shut').length, before);

    const otherAddress = lastAddress();
    await near.daemon.call('DELETE', `/origins/${opened.id}`);
    assert.equal(await post(otherAddress, '{"text":"closed"}'), 202);
    await eventually('the notification is dropped', async () =>
      (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0),
    );
    assert.ok(!hook.texts('/other').includes('closed'));

    await near.daemon.call('POST', `/agents/${caller}/acl/deny`, { aid });
    assert.equal(await post(address, '{"text":"denied"}'), 202);
    await eventually('the notification is dropped', async () =>
      (await pushOf(far)).mailboxes.every(({ waiting }) => waiting === 0),
    );
    assert.ok(!hook.texts('/shut').includes('denied'));
    await far.daemon.call('POST', `/agents/${aid}/acl/deny`, { aid: caller });
    assert.equal(await post(address, '{}'), 404, 'the webhook URL is removed');
    for (const secret of [token, new URL(address).pathname.split('/')[1] ?? '', 'of this task'])
      for (const { daemon } of [near, far]) assert.ok(!daemon.output.includes(secret), 'no secret in a log');
    assert.ok(memberOf(await pushOf(far), 'mailboxes') !== undefined);
  });
});
