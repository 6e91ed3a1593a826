/** Sends text and files to a chat or a group. Files become objects of the sending agent. */
import { useContext, useRef, useState } from 'preact/hooks';
import { t } from '../../lib/i18n.ts';
import { upload } from '../../lib/objects.ts';
import { here } from '../../lib/place.ts';
import { Names } from '../../parts/agent.tsx';
import { act } from '../../parts/overlay.tsx';
import { Uploading } from '../../parts/uploading.tsx';
import { notifyWritten } from './use-talk.ts';

interface Props {
  readonly as: string;
  readonly send: (text: string) => Promise<unknown>;
  /** @param base the base path of the node that has the object */
  readonly sendFile: (objectId: string, name: string, base: string) => Promise<unknown>;
}

export function Write({ as, send, sendFile }: Props) {
  const [text, setText] = useState('');
  const [part, setPart] = useState<number>();
  const stop = useRef<AbortController>(undefined);
  const file = useRef<HTMLInputElement>(null);
  const label = t('talk.write', { name: useContext(Names).get(as)?.text ?? as.slice(-5) });
  const say = (): void => {
    if (text.trim() === '') return;
    act(async () => {
      await send(text);
      setText('');
      notifyWritten();
    });
  };
  const attach = async (chosen: File): Promise<void> => {
    const { base } = here();
    const controller = new AbortController();
    stop.current = controller;
    setPart(0);
    try {
      await sendFile(await upload(as, chosen, setPart, controller.signal), chosen.name, base);
    } finally {
      setPart(undefined);
    }
    notifyWritten();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        say();
      }}
    >
      <textarea
        rows={1}
        aria-label={label}
        placeholder={label}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          say();
        }}
      />
      {part === undefined ? (
        <button type="button" onClick={() => file.current?.click()}>
          {t('talk.attach')}
        </button>
      ) : (
        <Uploading part={part} cancel={() => stop.current?.abort()} />
      )}
      <input
        ref={file}
        type="file"
        hidden
        aria-label={t('talk.attach')}
        onChange={({ currentTarget }) => {
          const [chosen] = currentTarget.files ?? [];
          currentTarget.value = '';
          if (chosen !== undefined) act(() => attach(chosen));
        }}
      />
      <button type="submit" class="main" disabled={text.trim() === ''}>
        {t('send')}
      </button>
    </form>
  );
}
