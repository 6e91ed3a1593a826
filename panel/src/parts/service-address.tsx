/** The address of the program that an agent offers. */
import { t } from '../lib/i18n.ts';
import { Field } from './basics.tsx';

interface Props {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

export function ServiceAddress(props: Props) {
  return (
    <>
      <p>{t('service.bind.how')}</p>
      <Field label={t('service.address')} name="service_tcp" placeholder="127.0.0.1:8080" {...props} />
    </>
  );
}
