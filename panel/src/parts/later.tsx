/** A component that loads when it is shown, together with its texts. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { loadAgent, loadTexts, t } from '../lib/i18n.ts';

interface LaterProps<P> {
  readonly load: () => Promise<ComponentType<P>>;
  readonly props: P;
}

interface Loaded<P> {
  readonly load: LaterProps<P>['load'];
  readonly shown: ComponentType<P>;
}

export function Later<P extends object>({ load, props }: LaterProps<P>) {
  const [loaded, setLoaded] = useState<Loaded<P>>();
  useEffect(() => {
    Promise.all([load(), loadTexts(loadAgent)]).then(
      ([shown]) => setLoaded({ load, shown }),
      () => {},
    );
  }, [load]);
  if (loaded?.load !== load) return <p class="empty">{t('loading')}</p>;
  const { shown: Shown } = loaded;
  return <Shown {...props} />;
}
