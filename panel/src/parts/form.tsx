/** A form. An error appears at the field that caused it, and the form stays open. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Failure, memberOf } from '../lib/failure.ts';
import { failureText } from '../lib/failure-text.ts';
import { t } from '../lib/i18n.ts';
import { Trouble } from './basics.tsx';
import { attempt, Dialog } from './overlay.tsx';

/** Fields of errors whose response names none. */
const FIELD_OF: Readonly<Record<string, readonly string[]>> = {
  bad_delegation: ['eth_signature_hex'],
  bad_aid: ['aid', 'body_aid', 'peer', 'recipient', 'target_aid'],
  bad_service_address: ['service_tcp'],
  bad_service_name: ['services'],
  resolve_failed: ['aid', 'peer', 'recipient', 'target_aid'],
  self: ['aid', 'body_aid', 'peer', 'recipient', 'target_aid', 'to'],
};

/** The field of a failure. Empty if it concerns the whole form. */
export function fieldOf(failure: Failure, fields: readonly string[]): string {
  const member = memberOf(failure);
  const known = [member, `body_${member}`, ...(FIELD_OF[failure.code] ?? [])];
  return known.find((name) => fields.includes(name)) ?? '';
}

/** The text of a failure, with the daemon's message about the value. */
function Reason({ failure }: { readonly failure: Failure }) {
  const text = failureText(failure);
  const isGeneral = failure.code === 'invalid_request' || failure.code === 'config_invalid';
  if (!isGeneral || failure.message === '' || failure.message === text) return <>{text}</>;
  return (
    <>
      {text} <small lang="en">{failure.message}</small>
    </>
  );
}

interface FormProps {
  /** The names of the fields in the form. */
  readonly fields: readonly string[];
  /** The text of the button: a verb and an object. */
  readonly verb: string;
  readonly run: () => Promise<unknown>;
  /** The notification of success. */
  readonly done?: string;
  /** Called after success. */
  readonly close?: (() => void) | undefined;
  readonly cancel?: (() => void) | undefined;
  readonly isReady?: boolean;
  /** Nothing has changed, so there are no buttons. */
  readonly isIdle?: boolean;
  readonly class?: string;
  /** Further buttons. */
  readonly more?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Form({
  fields,
  verb,
  run,
  done = '',
  close,
  cancel,
  isReady = true,
  isIdle = false,
  more,
  ...rest
}: FormProps) {
  const [failure, setFailure] = useState<Failure>();
  const [isRunning, setRunning] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  const field = failure === undefined ? '' : fieldOf(failure, fields);
  useEffect(() => {
    if (field !== '') element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [failure, field]);
  const submit = async (): Promise<void> => {
    setRunning(true);
    setFailure(undefined);
    const failed = await attempt(run, done);
    setRunning(false);
    setFailure(failed);
    if (failed === undefined) close?.();
  };
  return (
    <form
      ref={element}
      class={rest.class ?? ''}
      aria-busy={isRunning}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && !isIdle && !isRunning) submit().catch(() => {});
      }}
    >
      <Trouble.Provider
        value={failure === undefined || field === '' ? undefined : { field, text: <Reason failure={failure} /> }}
      >
        {rest.children}
      </Trouble.Provider>
      {failure !== undefined && field === '' && (
        <p class="bad trouble" role="alert">
          <Reason failure={failure} />
        </p>
      )}
      <div class="acts" hidden={isIdle}>
        {cancel !== undefined && (
          <button type="button" onClick={cancel}>
            {t('cancel')}
          </button>
        )}
        {more}
        <button type="submit" class="main" disabled={!isReady || isRunning}>
          {verb}
        </button>
      </div>
    </form>
  );
}

interface FormDialogProps extends Omit<FormProps, 'cancel' | 'close' | 'class'> {
  readonly title: string;
  readonly close: () => void;
}

/** A form in a dialog, which closes after success. */
export function FormDialog({ title, close, ...form }: FormDialogProps) {
  return (
    <Dialog title={title} close={close}>
      <Form {...form} close={close} cancel={close} />
    </Dialog>
  );
}
