// Runs on any Node, so that an old one gets a clear word instead of a syntax error: CommonJS, and no
// syntax younger than import(). It starts the program from dist/, which a package brings along and a
// checkout builds where its sources are newer.
var fs = require('fs');
var path = require('path');
var url = require('url');

var root = path.join(__dirname, '..');
/** The oldest version that the package names: major and minor. */
var needed = require('../package.json').engines.node.replace('>=', '');

function isOld(version) {
  var wanted = needed.split('.').map(Number);
  var given = version.split('.').map(Number);
  return given[0] < wanted[0] || (given[0] === wanted[0] && given[1] < wanted[1]);
}

/** Node 24 calls its SQLite experimental at every start: a word for whoever chose it, not for users of svcd. */
function keepQuietAboutSqlite() {
  var emit = process.emitWarning;
  process.emitWarning = function (warning, type) {
    if (type !== 'ExperimentalWarning' || String(warning).indexOf('SQLite') === -1) emit.apply(process, arguments);
  };
}

/** Null for a user without a home directory, as containers have them. */
function cacheBelowHome() {
  try {
    return path.join(require('os').homedir(), '.cache');
  } catch (error) {
    if (error.syscall !== 'uv_os_homedir') throw error;
    return null;
  }
}

/**
 * Keeps compiled code from one start to the next: beside the program, or where that may not be written, with what else
 * programs of this user keep. Where neither may be, each start compiles.
 */
function keepCompiled() {
  var nodeModule = require('module');
  var kept = nodeModule.enableCompileCache(path.join(root, 'dist', '.compiled'));
  if (kept.status !== nodeModule.constants.compileCacheStatus.FAILED) return;
  var home = process.env.XDG_CACHE_HOME || cacheBelowHome();
  if (home !== null) nodeModule.enableCompileCache(path.join(home, 'svcd'));
}

/** SIGUSR1 would open Node's debugger on a local port, to every user of this machine. */
function keepDebuggerClosed() {
  process.on('SIGUSR1', function () {});
}

/** When a file, or something in a folder, was last changed: milliseconds since 1970, and 0 where it is not there. */
function changedAt(name) {
  var stat = fs.statSync(name, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return fs.readdirSync(name).reduce(function (latest, entry) {
    return Math.max(latest, changedAt(path.join(name, entry)));
  }, stat.mtimeMs);
}

/** Whether a checkout has changed since dist/ was built. */
function isStale() {
  var built = changedAt(path.join(root, 'dist', 'built'));
  return [
    'src',
    'panel',
    'package-lock.json',
    path.join('tools', 'build.ts'),
    path.join('tools', 'build-panel.ts'),
    path.join('tools', 'bundle'),
  ].some(function (name) {
    return changedAt(path.join(root, name)) > built;
  });
}

/** Builds dist/ of a checkout, and returns whether it could. Standard output may belong to a protocol. */
function build() {
  var started = Date.now();
  process.stderr.write('svcd: building, as the sources have changed …');
  var done = require('child_process').spawnSync(
    process.execPath,
    [path.join(root, 'tools', 'build.ts'), '--checkout'],
    { cwd: root, encoding: 'utf8' },
  );
  if (done.status === 0) process.stderr.write(' done in ' + ((Date.now() - started) / 1000).toFixed(1) + ' s\n');
  else process.stderr.write(' that failed, so the sources run as they are, which starts slower\n' + done.stderr);
  return done.status === 0;
}

/**
 * Starts a program.
 * @param source the program below src/, for a checkout that cannot build
 * @param compiled the program below dist/
 */
module.exports = function launch(source, compiled) {
  if (isOld(process.versions.node)) {
    process.stderr.write(
      'svcd needs Node ' +
        needed +
        ' or newer; this is Node ' +
        process.versions.node +
        '.\n' +
        'Install a current Node, or use a checkout: "npm ci && npm start" brings its own.\n',
    );
    process.exit(1);
  }
  keepDebuggerClosed();
  keepQuietAboutSqlite();
  keepCompiled();
  var isCheckout = fs.existsSync(path.join(root, 'src'));
  var runs =
    isCheckout && isStale() && !build() ? path.join('src', source + '.ts') : path.join('dist', compiled + '.js');
  return import(url.pathToFileURL(path.join(root, runs)).href);
};
