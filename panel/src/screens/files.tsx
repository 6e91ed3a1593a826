/** The files of an agent. */
import { useRef, useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import * as format from '../lib/format.ts';
import { language, t } from '../lib/i18n.ts';
import { saveObject, upload } from '../lib/objects.ts';
import { perform, useQuery } from '../lib/query.ts';
import { AsAgent } from '../parts/as-agent.tsx';
import { Answer, Bytes, Copy, Empty, Section, UntrustedText, When } from '../parts/basics.tsx';
import { act, confirm, openDialog } from '../parts/overlay.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Uploading } from '../parts/uploading.tsx';
import { SendFile } from './files/send.tsx';

type Stored = Output<'objectList'>['objects'][number];

function Upload({ aid }: { readonly aid: string }) {
  const [part, setPart] = useState<number>();
  const stop = useRef<AbortController>(undefined);
  const send = (file: File): void => {
    const controller = new AbortController();
    stop.current = controller;
    setPart(0);
    act(() => upload(aid, file, setPart, controller.signal).finally(() => setPart(undefined)), t('files.stored'));
  };
  if (part !== undefined)
    return (
      <div class="acts">
        <Uploading part={part} cancel={() => stop.current?.abort()} />
      </div>
    );
  return (
    <label class="field">
      <span>{t('files.add')}</span>
      <input
        type="file"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file !== undefined) send(file);
          currentTarget.value = '';
        }}
      />
    </label>
  );
}

function columns(aid: string): readonly Column<Stored>[] {
  return [
    {
      title: t('files.name'),
      cell: ({ name, object_id }) => (
        <>
          <UntrustedText text={name === '' ? object_id.slice(0, 16) : name} />
          <small>
            <code>{object_id.slice(0, 16)}…</code>
          </small>
        </>
      ),
    },
    { title: t('files.size'), cell: ({ size }) => <Bytes count={size} /> },
    { title: t('files.since'), cell: ({ created_at }) => <When at={created_at} /> },
    {
      title: '',
      isNumber: true,
      cell: ({ object_id, name }) => (
        <>
          <button type="button" onClick={() => act(() => saveObject(aid, object_id, name === '' ? object_id : name))}>
            {t('save')}
          </button>{' '}
          <button
            type="button"
            onClick={() =>
              openDialog((close) => (
                <SendFile aid={aid} id={object_id} name={name === '' ? object_id.slice(0, 8) : name} close={close} />
              ))
            }
          >
            {t('send')}
          </button>{' '}
          <Copy text={`svc://${aid}/cas/${object_id}`} label={t('files.link')} />{' '}
          <button
            type="button"
            class="danger"
            onClick={() =>
              confirm({
                title: t('files.delete'),
                text: t('files.delete.what'),
                verb: t('files.delete'),
                run: () => perform('objectDelete', { aid, object_id }),
              })
            }
          >
            {t('delete')}
          </button>
        </>
      ),
    },
  ];
}

function Box({ aid }: { readonly aid: string }) {
  const objects = useQuery('objectList', { aid, limit: 1000 });
  return (
    <Answer of={objects}>
      {({ objects: all, usage }) => (
        <Section
          title={t('area.files')}
          note={t('files.usage', {
            n: usage.count,
            used: format.bytes(usage.bytes, language),
            most: format.bytes(usage.max_bytes, language),
          })}
        >
          {all.length === 0 ? (
            <Empty text={t('files.none')} />
          ) : (
            <Table label={t('area.files')} rows={all} columns={columns(aid)} keyOf={({ object_id }) => object_id} />
          )}
        </Section>
      )}
    </Answer>
  );
}

export function Files({ path: [aid] }: { readonly path: readonly string[] }) {
  return (
    <AsAgent area="files" aid={aid}>
      {(acting) => (
        <>
          <p class="soft">{t('files.what')}</p>
          <Upload key={`to ${acting}`} aid={acting} />
          <Box key={acting} aid={acting} />
        </>
      )}
    </AsAgent>
  );
}
