/** Method and path of each REST operation, by its name. tools/build-panel.ts fills it from the operations table. */
declare const ROUTES: Readonly<Record<string, string>>;
