/** Joins the network of another machine by its invitation or its address. */
import { useState } from 'preact/hooks';
import { t } from '../../lib/i18n.ts';
import { perform } from '../../lib/query.ts';
import { Field } from '../../parts/basics.tsx';
import { FormDialog } from '../../parts/form.tsx';

export function Join({ close }: { readonly close: () => void }) {
  const [to, setTo] = useState('');
  return (
    <FormDialog
      title={t('join')}
      verb={t('join.do')}
      close={close}
      fields={['to']}
      isReady={to.trim() !== ''}
      run={() => perform('join', { to: to.trim() })}
      done={t('join.done')}
    >
      <p>{t('join.what')}</p>
      <Field label={t('join.to')} name="to" type="lines" value={to} onInput={setTo} placeholder="svc://…" />
    </FormDialog>
  );
}
