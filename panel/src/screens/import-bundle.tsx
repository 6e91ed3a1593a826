/** Imports an agent from a file of another node. */
import { useState } from 'preact/hooks';
import type { Input } from '../lib/api.ts';
import { t } from '../lib/i18n.ts';
import { perform } from '../lib/query.ts';
import { InputError } from '../parts/basics.tsx';
import { act } from '../parts/overlay.tsx';

type Bundle = Input<'agentImport'>;

/** Whether a value may be an export. The daemon validates it. */
function isBundle(value: unknown): value is Bundle {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function ImportBundle({ done }: { readonly done: (aid: string) => void }) {
  const [trouble, setTrouble] = useState('');
  const open = async (file: File): Promise<void> => {
    const bundle = parsed(await file.text());
    setTrouble(isBundle(bundle) ? '' : t('new.import.bad'));
    if (!isBundle(bundle)) return;
    act(async () => {
      const { aid } = await perform('agentImport', bundle);
      done(aid);
    }, t('new.imported'));
  };
  return (
    <>
      <label class="field">
        <span>{t('new.import.file')}</span>
        <input
          type="file"
          accept=".json,application/json"
          onChange={({ currentTarget }) => {
            const [file] = currentTarget.files ?? [];
            if (file !== undefined) open(file).catch(() => setTrouble(t('new.import.bad')));
            currentTarget.value = '';
          }}
        />
      </label>
      <InputError text={trouble} />
    </>
  );
}
