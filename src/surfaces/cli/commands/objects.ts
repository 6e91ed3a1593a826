/** `svc object`: files by their hash, stored here or got from whoever has them. */
import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { SvcError } from '../../../foundation/errors.ts';
import { baseOf, errorOf, failureOf } from '../../../operations/client.ts';
import { objectOperations } from '../../../operations/objects.ts';
import type { OutputOf } from '../../../operations/operation.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { formatFields, formatTable, relativeTime } from '../text.ts';
import { addToolCommand, aidOf } from '../tool-command.ts';
import { integer } from '../values.ts';

type Stored = OutputOf<typeof objectOperations.objectPut>;
type Listed = OutputOf<typeof objectOperations.objectList>;

interface GetOptions {
  readonly dest?: string;
  readonly from?: string;
  readonly share?: boolean;
  readonly force?: boolean;
  readonly accessToken?: string;
}

const STORED_VIEW = {
  text: ({ object_id, size, url }: Stored) =>
    formatFields([
      ['object', object_id],
      ['size', `${size} bytes`],
      ['url', url],
    ]),
  quiet: ({ object_id }: Stored) => object_id,
};

/**
 * Sends a file of this machine to the daemon, whatever its size.
 * @throws SvcError `not_found` where it cannot be read, and what the daemon answers
 */
async function upload(context: CliContext, aid: string, file: string, name: string): Promise<Stored> {
  const { connection } = context;
  const base = baseOf(connection);
  let body: Blob;
  try {
    body = await openAsBlob(file);
  } catch (error) {
    throw new SvcError('not_found', { message: `${file} cannot be read.`, cause: error });
  }
  const { token, headers } = connection;
  const response = await fetch(`${base}/agents/${aid}/cas?name=${encodeURIComponent(name)}`, {
    method: 'POST',
    headers: {
      ...headers,
      ...(token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/octet-stream',
    },
    body,
    redirect: 'error',
  }).catch((error: unknown) => {
    throw failureOf(error, base, {});
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw errorOf(response.status, answer);
  return answer as Stored;
}

function listText({ objects: all, usage }: Listed): string {
  const used = `${usage.count} of ${usage.max_count} objects, ${usage.bytes} of ${usage.max_bytes} bytes.`;
  if (all.length === 0) return `No objects. ${used}`;
  const rows = all.map((one) => [one.object_id, `${one.size}`, one.name, relativeTime(one.created_at, Date.now())]);
  return `${formatTable(['OBJECT', 'SIZE', 'NAME', 'STORED'], rows)}\n${used}`;
}

function storing(object: Command, contextOf: ContextOf): void {
  const acting = (command: Command): Command =>
    command.option('--aid <aid>', 'the local agent; may be left out where there is only one');
  acting(object.command('put <file>'))
    .description('store a file as an object of an agent')
    .option('--name <name>', 'its name; that of the file where it is left out')
    .addHelpText('after', examples('svc object put plan.pdf', 'svc object put plan.pdf --name "Plan for May.pdf"'))
    .action(async (file: string, options: { aid?: string; name?: string }, command: Command) => {
      const context = contextOf(command);
      const aid = await context.localAgent(options.aid);
      const sending = upload(context, aid, file, options.name ?? basename(file));
      context.show(await context.progress('Storing', sending), STORED_VIEW);
    });
  addToolCommand<typeof objectOperations.objectPut, { name?: string }>(object, contextOf, {
    usage: 'add <path>',
    about: 'make a file below files_root an object where it lies, without a copy',
    operation: objectOperations.objectPut,
    examples: ['svc object add films/holiday.mp4'],
    declare: (command) => command.option('--name <name>', 'its name; that of the file where it is left out'),
    input: ({ words: [path], options }) => ({ path, name: options.name }),
    view: STORED_VIEW,
  });
  acting(object.command('list'))
    .description('list the objects of an agent')
    .option('--limit <count>', 'at most so many', integer)
    .option('--cursor <cursor>', 'next_cursor of the page before')
    .addHelpText('after', examples('svc object list'))
    .action(async ({ aid: named, ...page }: { aid?: string; limit?: number; cursor?: string }, command: Command) => {
      const context = contextOf(command);
      const aid = await context.localAgent(named);
      const list = await context.client.objectList({ aid, ...page });
      context.show(list, {
        text: listText,
        quiet: ({ objects: all }) => all.map(({ object_id }) => object_id).join('\n'),
      });
      if (list.next_cursor !== undefined) context.note(`More objects follow: --cursor ${list.next_cursor}`);
    });
  acting(object.command('del <object>'))
    .description('delete an object; a file that was added where it lies stays')
    .addHelpText('after', examples('svc object del 9f2c…'))
    .action(async (object_id: string, options: { aid?: string }, command: Command) => {
      const context = contextOf(command);
      const aid = await context.localAgent(options.aid);
      const deleted = await context.client.objectDelete({ aid, object_id });
      context.show(deleted, { text: () => 'The object is deleted.', quiet: () => object_id });
    });
}

function getting(object: Command, contextOf: ContextOf): void {
  addToolCommand<typeof objectOperations.objectLocate, { from?: string }>(object, contextOf, {
    usage: 'locate <object>',
    about: 'say who has an object, without getting it',
    operation: objectOperations.objectLocate,
    examples: ['svc object locate 9f2c… --from aid1…'],
    declare: (command) => command.option('--from <aid>', 'an agent that may have it'),
    input: async ({ words: [object_id], options }, context) => ({
      object_id,
      hint_aid: await aidOf(context, options.from),
    }),
    view: {
      text: ({ local, holders }) =>
        [
          local ? 'It is here.' : 'It is not here.',
          holders.length === 0
            ? 'Nobody else is known to have it.'
            : formatTable(
                ['AID', 'STATUS', 'SIZE', 'NAME'],
                holders.map((one) => [one.aid, one.status, `${one.size ?? ''}`, one.name ?? '']),
              ),
        ].join('\n'),
      quiet: ({ holders }) => holders.flatMap(({ aid, status }) => (status === 'available' ? [aid] : [])).join('\n'),
    },
  });
  addToolCommand<typeof objectOperations.objectGet, GetOptions>(object, contextOf, {
    usage: 'get <object>',
    about: 'get an object to a file below files_root, from whoever has it',
    operation: objectOperations.objectGet,
    examples: ['svc object get 9f2c… --from aid1… --dest plans/may.pdf'],
    declare: (command) =>
      command
        .option('--from <aid>', 'an agent that may have it')
        .option('--dest <path>', 'where to; downloads/ and its id where it is left out')
        .option('--share', 'let others get it here')
        .option('--force', 'overwrite the file that is there')
        .option(
          '--access-token <secret>',
          'what the holder asks for (SVC_ACCESS_TOKEN keeps it out of the process list)',
        ),
    input: async ({ words: [object_id], options }, context) => ({
      object_id,
      dest: options.dest,
      hint_aid: await aidOf(context, options.from),
      register: options.share,
      force: options.force,
      access_token: options.accessToken ?? context.io.env['SVC_ACCESS_TOKEN'],
    }),
    view: { text: ({ path, size }) => `${path} has its ${size} bytes.`, quiet: ({ path }) => path },
  });
}

export function objectCommands(program: Command, contextOf: ContextOf): void {
  const object = program
    .command('object')
    .description('files by their hash: stored here, or got from whoever has them')
    .addHelpText('after', examples('svc object put plan.pdf', 'svc object get 9f2c… --from aid1…'));
  storing(object, contextOf);
  getting(object, contextOf);
}
