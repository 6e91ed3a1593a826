/** `svc object`: files by hash, stored here or fetched from other agents. */
import { basename } from 'node:path';
import { relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { addFile, type Stored, uploadFile } from '../file-transfer.ts';
import type { ACTING_AGENT } from '../options.ts';
import { shortSize } from '../reach-text.ts';
import { formatFields, formatTable, type OutputText } from '../text.ts';

const STORED = {
  text: ({ object_id, size, url }: Stored) => formatFields({ object: object_id, size: shortSize(size), url }),
  quiet: ({ object_id }: Stored) => object_id,
};

const NAME = { '--name <name>': 'its name; default: the name of the file' } as const;

function listText({ objects: all, usage }: AnswerOf<'objectList'>): OutputText {
  const used = `${usage.count} of ${usage.max_count} objects, ${shortSize(usage.bytes)} of ${shortSize(usage.max_bytes)}.`;
  const rows = all.map((one) => [
    one.object_id,
    shortSize(one.size),
    one.name,
    relativeTime(one.created_at, Date.now()),
  ]);
  return all.length === 0 ? `No objects. ${used}` : [formatTable(['OBJECT', 'SIZE', 'NAME', 'STORED'], rows), used];
}

function storing(object: CommandGroup<typeof ACTING_AGENT>): void {
  object.run('put <file>', 'store a file as an object of an agent', {
    examples: ['svc object put plan.pdf', 'svc object put plan.pdf --name "Plan for May.pdf"'],
    options: NAME,
    progress: 'Storing',
    run: (context, { aid, file, name }) => uploadFile(context, aid, file, name ?? basename(file)),
    ...STORED,
  });
  object.run('add <path>', 'make a file an object: in place if it is in files_root, otherwise as a copy', {
    examples: ['svc object add films/holiday.mp4', 'svc object add ~/plan.pdf'],
    options: NAME,
    progress: 'Storing',
    run: (context, { aid, path, name }) => addFile(context, aid, path, name),
    ...STORED,
  });
  object.call('objectList', 'list', 'list the objects of an agent', {
    watch: true,
    text: listText,
    quiet: ({ objects }) => objects.map(({ object_id }) => object_id).join('\n'),
    remark: ({ next_cursor }) => next_cursor !== undefined && `More objects: --cursor ${next_cursor}`,
  });
  object.call('objectDelete', 'rm <object>', 'delete an object; a file that was added in place stays', {
    confirmation: ({ object_id }) => ({
      question: `Delete the object ${object_id}?`,
      consequence: 'To restore it, store the file again with "svc object put" or fetch it from another agent.',
    }),
    text: 'Deleted the object.',
  });
}

function getting(object: CommandGroup<typeof ACTING_AGENT>): void {
  const locate = 'show which agents have an object, without fetching it';
  object.call('objectLocate', 'locate <object> --from=hint_aid <aid>', locate, {
    examples: ['svc object locate 9f2c… --from aid1…'],
    help: { hint_aid: 'an agent that may have it' },
    text: ({ local, holders }) => [
      local ? 'It is stored here.' : 'It is not stored here.',
      formatTable(
        ['AID', 'STATUS', 'SIZE', 'NAME'],
        holders.map((one) => [one.aid, one.status, one.size === undefined ? '' : shortSize(one.size), one.name]),
        'No other agent is known to have it.',
      ),
    ],
    quiet: ({ holders }) => holders.flatMap(({ aid, status }) => (status === 'available' ? [aid] : [])).join('\n'),
  });
  const get = 'get <object> --from=hint_aid <aid> --dest <path> --share=register --force --access-token <secret>';
  object.call('objectGet', get, 'fetch an object to a file in files_root from any agent that has it', {
    examples: ['svc object get 9f2c… --from aid1… --dest plans/may.pdf'],
    help: {
      hint_aid: 'an agent that may have it',
      dest: 'target path; default: downloads/ and its ID',
      register: 'let others fetch it from here',
      force: 'overwrite an existing file',
      access_token: 'access token that the holder requires',
    },
    text: ({ path, size }) => `Fetched ${path}, ${shortSize(size)}.`,
    quiet: 'path',
  });
}

export function objectCommands(svc: CommandGroup): void {
  const object = svc
    .group('object', 'files by hash: stored here, or fetched from other agents', [
      'svc object put plan.pdf',
      'svc object get 9f2c… --from aid1…',
    ])
    .acting();
  storing(object);
  getting(object);
}
