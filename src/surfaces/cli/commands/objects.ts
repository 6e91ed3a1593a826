/** `svc object`: files by their hash, stored here or got from whoever has them. */
import { basename } from 'node:path';
import { relativeTime } from '../../../foundation/plain-words.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { Shape } from '../laid.ts';
import { roughSize } from '../reach-text.ts';
import { type ACTING, accessToken, integer } from '../takes.ts';
import { formatFields, formatTable } from '../text.ts';
import { addFile, type Stored, uploadFile } from '../upload.ts';

const STORED = {
  text: ({ object_id, size, url }: Stored) => formatFields({ object: object_id, size: roughSize(size), url }),
  quiet: ({ object_id }: Stored) => object_id,
};

const NAME = { '--name <name>': 'its name; that of the file where it is left out' } as const;

function listText({ objects: all, usage }: AnswerOf<'objectList'>): Shape {
  const used = `${usage.count} of ${usage.max_count} objects, ${roughSize(usage.bytes)} of ${roughSize(usage.max_bytes)}.`;
  const rows = all.map((one) => [
    one.object_id,
    roughSize(one.size),
    one.name,
    relativeTime(one.created_at, Date.now()),
  ]);
  return all.length === 0 ? `No objects. ${used}` : [formatTable(['OBJECT', 'SIZE', 'NAME', 'STORED'], rows), used];
}

function storing(object: CommandGroup<typeof ACTING>): void {
  object.run('put <file>', 'store a file as an object of an agent', {
    examples: ['svc object put plan.pdf', 'svc object put plan.pdf --name "Plan for May.pdf"'],
    takes: NAME,
    progress: 'Storing',
    run: (context, { aid, file, name }) => uploadFile(context, aid, file, name ?? basename(file)),
    ...STORED,
  });
  object.run('add <path>', 'make a file an object: below files_root where it lies, any other by a copy', {
    examples: ['svc object add films/holiday.mp4', 'svc object add ~/plan.pdf'],
    takes: NAME,
    progress: 'Storing',
    run: (context, { aid, path, name }) => addFile(context, aid, path, name),
    ...STORED,
  });
  object.call('list', 'list the objects of an agent', {
    takes: { '--limit <count>': integer('at most so many'), '--cursor <cursor>': 'next_cursor of the page before' },
    operation: 'objectList',
    watch: true,

    text: listText,
    quiet: ({ objects }) => objects.map(({ object_id }) => object_id).join('\n'),
    remark: ({ next_cursor }) => next_cursor !== undefined && `More objects follow: --cursor ${next_cursor}`,
  });
  object.call('del <object>', 'delete an object; a file that was added where it lies stays', {
    loses: ({ object_id }) => ({
      question: `Delete the object ${object_id}?`,
      back: 'Only its file, stored again with "svc object put", or another holder brings it back.',
    }),
    operation: 'objectDelete',
    text: () => 'The object is deleted.',
    quiet: (_, { object_id }) => object_id,
  });
}

function getting(object: CommandGroup<typeof ACTING>): void {
  object.call('locate <object>', 'say who has an object, without getting it', {
    examples: ['svc object locate 9f2c… --from aid1…'],
    takes: { '--from <aid>': 'an agent that may have it' },
    operation: 'objectLocate',
    input: ({ from: hint_aid, ...rest }) => ({ ...rest, hint_aid }),
    text: ({ local, holders }) => [
      local ? 'It is here.' : 'It is not here.',
      formatTable(
        ['AID', 'STATUS', 'SIZE', 'NAME'],
        holders.map((one) => [one.aid, one.status, one.size === undefined ? '' : roughSize(one.size), one.name]),
        'Nobody else is known to have it.',
      ),
    ],
    quiet: ({ holders }) => holders.flatMap(({ aid, status }) => (status === 'available' ? [aid] : [])).join('\n'),
  });
  object.call('get <object>', 'get an object to a file below files_root, from whoever has it', {
    examples: ['svc object get 9f2c… --from aid1… --dest plans/may.pdf'],
    takes: {
      '--from <aid>': 'an agent that may have it',
      '--dest <path>': 'where to; downloads/ and its id where it is left out',
      '--share': 'let others get it here',
      '--force': 'overwrite the file that is there',
      '--access-token <secret>': accessToken('what the holder asks for'),
    },
    operation: 'objectGet',
    input: ({ from: hint_aid, share: register, ...rest }) => ({ ...rest, hint_aid, register }),
    text: ({ path, size }) => `${path} has all of it, ${roughSize(size)}.`,
    quiet: ({ path }) => path,
  });
}

export function objectCommands(svc: CommandGroup): void {
  const object = svc
    .group('object', 'files by their hash: stored here, or got from whoever has them', [
      'svc object put plan.pdf',
      'svc object get 9f2c… --from aid1…',
    ])
    .acting();
  storing(object);
  getting(object);
}
