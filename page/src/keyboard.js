// Keys of the page, outside of fields.

const GRAPH_MOVES = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

/** The actions by key. Each takes the app. */
const ACTIONS = {
  Enter: (app) => app.zoomToSelected(),
  Backspace: (app) => app.zoomOut(),
  0: (app) => app.set({ zoom: [], zoomNode: 0 }, true),
  i: (app) => app.set({ flame: !app.state.flame }),
  m: (app) => app.openSelectedMenu(),
  s: (app) => app.onFrame((frame) => app.sandwich(frame)),
  f: (app) => app.onFrame((frame) => app.addFilter(true, frame)),
  x: (app) => app.onFrame((frame) => app.addFilter(false, frame)),
  e: (app) => app.onFrame((frame) => app.searchFrame(frame)),
  u: (app) => app.set({ filters: app.state.filters.slice(0, -1) }, true),
  t: (app) => app.nextPanes(),
  '/': (app) => app.toolbar.focusSearch(),
  n: (app) => app.stepMatch(1),
  N: (app) => app.stepMatch(-1),
  o: (app) => app.set({ onlyMatches: !app.state.onlyMatches }),
  v: (app) => app.setView(app.state.view === 'inverted' ? 'main' : 'inverted'),
  g: (app) => app.toggleThreads(),
  h: (app) => app.toggleHeatMap(),
  r: (app) => app.toggleOrder(),
  '[': (app) => app.moveWindow(-1),
  ']': (app) => app.moveWindow(1),
  '{': (app) => app.resizeWindow(0.5),
  '}': (app) => app.resizeWindow(2),
  w: (app) => app.chooseWindow(null),
  l: (app) => app.openLabels(),
  p: (app) => app.set({ type: (app.state.type + 1) % app.profile.types.length, zoom: [] }, true),
  b: (app) => app.profile.sides === 2 && app.set({ elided: !app.state.elided }),
  c: (app) => app.nextColour(),
  d: (app) => app.toggleTheme(),
  '?': (app) => app.help.toggle(),
  Escape: (app) => app.escape(),
};

export function listenKeys(app) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const { target } = event;
    const isField = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (isField) {
      if (event.key === 'Escape') {
        target.blur();
        event.preventDefault();
      }
      return;
    }
    // A focused button keeps its own keys.
    if (target instanceof HTMLButtonElement && (event.key === 'Enter' || event.key === ' ')) {
      return;
    }
    if (app.help.isOpen && event.key !== '?' && event.key !== 'Escape') {
      return;
    }
    const move = GRAPH_MOVES[event.key];
    const action = Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key] : null;
    if (move) {
      app.pane.move(move);
    } else if (action) {
      action(app);
    } else {
      return;
    }
    event.preventDefault();
  });
}
