/** The web panel of svcd. */
import { render } from 'preact';
import { App } from './app.tsx';
import { enter } from './lib/enter.ts';
import { setLanguage } from './lib/i18n.ts';
import { followEvents } from './lib/live.ts';
import { savedLanguage, savedTheme, setTheme } from './lib/prefs.ts';
import { pauseWhenHidden } from './lib/query.ts';

setTheme(savedTheme());
await Promise.all([enter(), setLanguage(savedLanguage())]);
pauseWhenHidden();
followEvents();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
