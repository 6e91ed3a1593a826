/** A component that is loaded when it is shown. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { t } from '../lib/i18n.ts';

interface LaterProps<P> {
  readonly load: () => Promise<ComponentType<P>>;
  readonly props: P;
}

export function Later<P extends object>({ load, props }: LaterProps<P>) {
  const [loaded, setLoaded] = useState<{ readonly shown: ComponentType<P> }>();
  useEffect(() => {
    load().then(
      (shown) => setLoaded({ shown }),
      () => {},
    );
  }, [load]);
  if (loaded === undefined) return <p class="empty">{t('loading')}</p>;
  const { shown: Shown } = loaded;
  return <Shown {...props} />;
}
