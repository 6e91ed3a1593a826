/** Reads a master key from a file or from typed text. */
import { useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';
import { readSeed } from '../lib/master.ts';
import { Field, InputError } from './basics.tsx';

/** Largest file, bytes. */
const MAX_BYTES = 4096;

interface Props {
  readonly take: (seed: Uint8Array<ArrayBuffer>) => void;
}

export function ReadMaster({ take }: Props) {
  const [trouble, setTrouble] = useState('');
  const [typed, setTyped] = useState('');
  const use = (text: string): void => {
    const seed = readSeed(text);
    setTrouble(seed === null ? t('master.none') : '');
    if (seed === null) return;
    setTyped('');
    take(seed);
  };
  const open = async (file: File): Promise<void> => {
    const bytes = new Uint8Array(await file.slice(0, MAX_BYTES).arrayBuffer());
    const text = new TextDecoder().decode(bytes);
    bytes.fill(0);
    use(text);
  };
  return (
    <>
      <label class="field">
        <span>{t('master.file')}</span>
        <input
          type="file"
          accept=".txt,text/plain"
          onChange={({ currentTarget }) => {
            const [file] = currentTarget.files ?? [];
            if (file !== undefined) open(file).catch(() => setTrouble(t('master.none')));
            currentTarget.value = '';
          }}
        />
      </label>
      <details>
        <summary>{t('master.type')}</summary>
        <Field label={t('master.hex')} type="secret" value={typed} onInput={setTyped} />
        <button type="button" onClick={() => use(typed)}>
          {t('master.use')}
        </button>
      </details>
      <InputError text={trouble} />
    </>
  );
}
