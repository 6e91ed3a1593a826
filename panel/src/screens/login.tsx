/** The login screen. */
import { useEffect, useState } from 'preact/hooks';
import { openSession } from '../lib/enter.ts';
import { asFailure } from '../lib/failure.ts';
import { failureText } from '../lib/failure-text.ts';
import { t } from '../lib/i18n.ts';
import { refresh } from '../lib/query.ts';
import { askTabs, onSession } from '../lib/session.ts';
import { Field, InputError } from '../parts/basics.tsx';

export function Login() {
  const [token, setToken] = useState('');
  const [trouble, setTrouble] = useState('');
  useEffect(() => {
    const end = onSession(refresh);
    askTabs();
    return end;
  }, []);
  const enter = (): void => {
    openSession({ api_token: token }).catch((error: unknown) => setTrouble(failureText(asFailure(error))));
    setToken('');
  };
  return (
    <main>
      <h1>{t('login')}</h1>
      <p class="lead">{t('login.how')}</p>
      <pre>svc panel</pre>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          enter();
        }}
      >
        <Field label={t('login.token')} type="password" value={token} onInput={setToken} />
        <InputError text={trouble} />
        <button class="main" type="submit">
          {t('login.enter')}
        </button>
      </form>
    </main>
  );
}
