/* The hooks of each step, and the marks that they leave: what `dataset`, `steps` and `around` do in Python, for the usual case.

   The counters of the recorder, of the loop, of the windows and of an iterator are members of types that the Python classes
   derive from, so that both halves count the same. Whatever is not usual (nothing is recorded, a first row, a window that is
   open or due, an iterator that is looked at, an exception that was left) is done by the Python hook, as a whole and from
   the beginning; it is decided before anything is counted. No error of our own reaches the training, and an exception of
   the training's passes as it was. Nothing is kept outside of objects: each interpreter has its own. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INTERFACE 2 /* as in hooks.py: a file that was compiled from an older source is not used */

/* As in recorder.py. */
enum { FETCH = 1, TRAIN_STEP = 2, UPDATE = 10, CALL = 11 };
enum { ROW = 0, STOPPED = 1, FAILED = 2 };
enum { OPTIMIZER = 0, JIT = 2, GRADIENT = 3 };
/* Kinds of hooks; 0: a place of `calls` that is free. */
enum { FREE, ON_FETCH, ON_STEP, ON_CALL, ON_COMPILE, ON_CALLBACKS };
/* What the end of a step is for the windows. */
enum { IN_PYTHON, COUNTED, IGNORED };

/* The step between two calls has driven the hooks out of the caches: what is usual is short, and lies together. */
#if defined(__GNUC__)
#define USUAL __attribute__((hot))
#define RARE __attribute__((cold, noinline))
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#else
#define USUAL
#define RARE
#define unlikely(condition) (condition)
#endif

#define WIDTH 26
#define UNITS 4
#define PLACES 16
#define SHORTEST_NS 100000 /* a callback that is faster is left in its step */

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (long long)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int is_none(PyObject *object)
{
    return object == NULL || object == Py_None;
}

/* All that own nothing but objects end alike. */
static void ended(PyObject *self, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* --- Marks: what the recorder derives from ---------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    char off, graph_lines;
    PyObject *folder;
    long long flushed, unwritten_ns;
    unsigned char *data;
    Py_ssize_t count, room;
} Marks;

static int marks_traverse(Marks *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->folder);
    return 0;
}

static int marks_clear(Marks *self)
{
    Py_CLEAR(self->folder);
    return 0;
}

static void marks_dealloc(Marks *self)
{
    PyMem_Free(self->data);
    self->data = NULL;
    ended((PyObject *)self, (inquiry)marks_clear);
}

static void put_number(unsigned char *at, unsigned long long value, int bytes)
{
    for (int place = 0; place < bytes; place++)
        at[place] = (unsigned char)(value >> (8 * place));
}

/* Call a method of the Python half. Returns -1 with an error set. */
RARE static int call(void *self, const char *method)
{
    PyObject *done = PyObject_CallMethod(self, method, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

RARE static int grow(Marks *self)
{
    Py_ssize_t room = self->room ? self->room * 2 : 256;
    unsigned char *data = PyMem_Realloc(self->data, (size_t)room * WIDTH);
    if (data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->data = data;
    self->room = room;
    return 0;
}

/* Keep a mark; flush where the last time is long ago. Returns -1 with an error set. */
USUAL static int put(Marks *self, int kind, int flag, unsigned long long subject, unsigned long long number, long long begin, long long end)
{
    if (unlikely(self->count == self->room) && grow(self) < 0)
        return -1;
    unsigned char *at = self->data + self->count++ * WIDTH;
    at[0] = (unsigned char)kind;
    at[1] = (unsigned char)flag;
    put_number(at + 2, subject, 4);
    put_number(at + 6, number, 4);
    put_number(at + 10, (unsigned long long)begin, 8);
    put_number(at + 18, (unsigned long long)end, 8);
    return unlikely(end - self->flushed > self->unwritten_ns) ? call(self, "flush") : 0;
}

static PyObject *marks_mark(Marks *self, PyObject *const *args, Py_ssize_t count)
{
    unsigned long long values[6];
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "mark takes kind, flag, subject, number, begin and end");
        return NULL;
    }
    for (int place = 0; place < 6; place++) {
        values[place] = place < 4 ? PyLong_AsUnsignedLongLongMask(args[place]) : (unsigned long long)PyLong_AsLongLong(args[place]);
        if (PyErr_Occurred())
            return NULL;
    }
    if (put(self, (int)values[0], (int)values[1], values[2], values[3], (long long)values[4], (long long)values[5]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *marks_taken(Marks *self, PyObject *unused)
{
    PyObject *data = PyBytes_FromStringAndSize((char *)self->data, self->count * WIDTH);
    if (data != NULL)
        self->count = 0;
    return data;
}

static PyMethodDef marks_methods[] = {
    {"mark", (PyCFunction)(void (*)(void))marks_mark, METH_FASTCALL, "Record one interval: kind, flag, subject, number, begin, end."},
    {"_taken", (PyCFunction)marks_taken, METH_NOARGS, "The marks since the last time, as they are written."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef marks_members[] = {
    {"off", T_BOOL, offsetof(Marks, off), 0, NULL},
    {"graph_lines", T_BOOL, offsetof(Marks, graph_lines), 0, NULL},
    {"folder", T_OBJECT, offsetof(Marks, folder), 0, NULL},
    {"_flushed", T_LONGLONG, offsetof(Marks, flushed), 0, NULL},
    {"_unwritten_ns", T_LONGLONG, offsetof(Marks, unwritten_ns), 0, NULL},
    {"_unpacked", T_PYSSIZET, offsetof(Marks, count), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* --- Counters of an iterator, of the loop and of the windows ------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    char hidden, plain;
    long long number, other_thread, rows, last_row, take_at;
} Tree;

static int tree_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int tree_clear(PyObject *self)
{
    return 0;
}

static void tree_dealloc(PyObject *self)
{
    ended(self, tree_clear);
}

static PyMemberDef tree_members[] = {
    {"hidden", T_BOOL, offsetof(Tree, hidden), 0, NULL},
    {"plain", T_BOOL, offsetof(Tree, plain), 0, NULL},
    {"number", T_LONGLONG, offsetof(Tree, number), 0, NULL},
    {"other_thread", T_LONGLONG, offsetof(Tree, other_thread), 0, NULL},
    {"rows", T_LONGLONG, offsetof(Tree, rows), 0, NULL},
    {"last_row", T_LONGLONG, offsetof(Tree, last_row), 0, NULL},
    {"take_at", T_LONGLONG, offsetof(Tree, take_at), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

typedef struct {
    PyObject_HEAD
    char updates_seen, fetched;
    long model, inside;
    long long calls, last, closing;
    unsigned long thread;
    PyObject *pending, *since, *feeding, *left;
} Loop;

static int loop_traverse(Loop *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->pending);
    Py_VISIT(self->since);
    Py_VISIT(self->feeding);
    Py_VISIT(self->left);
    return 0;
}

static int loop_clear(Loop *self)
{
    Py_CLEAR(self->pending);
    Py_CLEAR(self->since);
    Py_CLEAR(self->feeding);
    Py_CLEAR(self->left);
    return 0;
}

static void loop_dealloc(PyObject *self)
{
    ended(self, (inquiry)loop_clear);
}

static PyMemberDef loop_members[] = {
    {"updates_seen", T_BOOL, offsetof(Loop, updates_seen), 0, NULL},
    {"fetched", T_BOOL, offsetof(Loop, fetched), 0, NULL},
    {"model", T_LONG, offsetof(Loop, model), 0, NULL},
    {"inside", T_LONG, offsetof(Loop, inside), 0, NULL},
    {"calls", T_LONGLONG, offsetof(Loop, calls), 0, NULL},
    {"last", T_LONGLONG, offsetof(Loop, last), 0, NULL},
    {"closing", T_LONGLONG, offsetof(Loop, closing), 0, NULL},
    {"thread", T_ULONG, offsetof(Loop, thread), 0, NULL},
    {"pending", T_OBJECT, offsetof(Loop, pending), 0, NULL},
    {"since", T_OBJECT, offsetof(Loop, since), 0, NULL},
    {"feeding", T_OBJECT, offsetof(Loop, feeding), 0, NULL},
    {"left", T_OBJECT, offsetof(Loop, left), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

typedef struct {
    PyObject_HEAD
    int stepping;
    long long done, open_at, not_before;
    PyObject *folder, *error;
} Windows;

static int windows_traverse(Windows *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->folder);
    Py_VISIT(self->error);
    return 0;
}

static int windows_clear(Windows *self)
{
    Py_CLEAR(self->folder);
    Py_CLEAR(self->error);
    return 0;
}

static void windows_dealloc(PyObject *self)
{
    ended(self, (inquiry)windows_clear);
}

static PyMemberDef windows_members[] = {
    {"stepping", T_INT, offsetof(Windows, stepping), 0, NULL},
    {"done", T_LONGLONG, offsetof(Windows, done), 0, NULL},
    {"open_at", T_LONGLONG, offsetof(Windows, open_at), 0, NULL},
    {"not_before", T_LONGLONG, offsetof(Windows, not_before), 0, NULL},
    {"folder", T_OBJECT, offsetof(Windows, folder), 0, NULL},
    {"error", T_OBJECT, offsetof(Windows, error), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Whether no window is open, or will be by so many more steps, and the training has nothing to be told. */
USUAL static int is_quiet(Windows *self, long long at, int steps)
{
    if (self->stepping == IN_PYTHON || !is_none(self->folder) || !is_none(self->error))
        return 0;
    return self->stepping == IGNORED || self->done + steps < self->open_at || at < self->not_before;
}

USUAL static int step_done(Windows *self, long long at)
{
    if (!is_quiet(self, at, 1))
        return call(self, "step_done");
    self->done += self->stepping == COUNTED;
    return 0;
}

/* --- What the hooks of one probe share ----------------------------------------------------------------------------------- */

typedef struct {
    int kind, flag;
    unsigned long thread;
    long long begin, number, rows;
} Place;

typedef struct {
    PyObject_HEAD
    Marks *rec;
    Loop *loop;
    Windows *windows;
    char service;
    Place places[PLACES]; /* calls that are under way */
    PyObject *tell, *method, *names[8], *types[4];
} Lane;

enum { KEY, FN, OBJ, ARGS, ORIGINAL_ARGS, EPOCH, STEP };
static const char *const names[] = {"_pipeprof", "fn", "obj", "_original_args", "original_args", "cur_epoch_num", "cur_step_num", NULL};
enum { MARKS, TREE, LOOP, WINDOWS };

static int lane_traverse(Lane *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->tell);
    Py_VISIT(self->method);
    for (int place = 0; place < 4; place++)
        Py_VISIT(self->types[place]);
    Py_VISIT(self->rec);
    Py_VISIT(self->loop);
    Py_VISIT(self->windows);
    return 0;
}

static int lane_clear(Lane *self)
{
    Py_CLEAR(self->tell);
    Py_CLEAR(self->method);
    for (int place = 0; place < 8; place++)
        Py_CLEAR(self->names[place]);
    for (int place = 0; place < 4; place++)
        Py_CLEAR(self->types[place]);
    Py_CLEAR(self->rec);
    Py_CLEAR(self->loop);
    Py_CLEAR(self->windows);
    return 0;
}

static void lane_dealloc(PyObject *self)
{
    ended(self, (inquiry)lane_clear);
}

static const char *const type_names[] = {"Marks", "Tree", "Loop", "Windows"};

static int lane_init(Lane *self, PyObject *args, PyObject *kwargs)
{
    PyObject *tell, *method, *module = PyType_GetModule(Py_TYPE(self));
    if (module == NULL || !PyArg_ParseTuple(args, "OO:Lane", &tell, &method))
        return -1;
    lane_clear(self);
    self->tell = Py_NewRef(tell);
    self->method = Py_NewRef(method);
    for (int place = 0; names[place] != NULL; place++)
        if ((self->names[place] = PyUnicode_InternFromString(names[place])) == NULL)
            return -1;
    for (int place = 0; place < 4; place++)
        if ((self->types[place] = PyObject_GetAttrString(module, type_names[place])) == NULL)
            return -1;
    return 0;
}

/* What is no object of ours is not taken: the hooks are the Python ones then. */
static int lane_use(Lane *self, PyObject *value, void *closure)
{
    int which = (int)(Py_ssize_t)closure;
    PyObject **place = which == MARKS ? (PyObject **)&self->rec : which == LOOP ? (PyObject **)&self->loop : (PyObject **)&self->windows;
    PyObject *before = *place;
    int fits = value != NULL && self->types[which] != NULL && PyObject_TypeCheck(value, (PyTypeObject *)self->types[which]);
    *place = fits ? Py_NewRef(value) : NULL;
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef lane_getset[] = {
    {"rec", NULL, (setter)lane_use, NULL, (void *)MARKS},
    {"loop", NULL, (setter)lane_use, NULL, (void *)LOOP},
    {"windows", NULL, (setter)lane_use, NULL, (void *)WINDOWS},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef lane_members[] = {
    {"service", T_BOOL, offsetof(Lane, service), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *lane_calls(Lane *self, PyObject *unused)
{
    PyObject *found = PyList_New(0);
    for (int number = 0; found != NULL && number < PLACES; number++) {
        Place *place = &self->places[number];
        if (place->kind == FREE)
            continue;
        PyObject *one = Py_BuildValue("kiiLLL", place->thread, place->kind, place->flag, place->begin, place->number, place->rows);
        if (one == NULL || PyList_Append(found, one) < 0)
            Py_CLEAR(found);
        Py_XDECREF(one);
    }
    return found;
}

static PyMethodDef lane_methods[] = {
    {"calls", (PyCFunction)lane_calls, METH_NOARGS, "Calls that are under way: thread, kind, flag, begin, number of the tree, its rows."},
    {NULL, NULL, 0, NULL},
};

/* A place by number, not by address: a stack that is switched may move. -1: all are taken. */
USUAL static int enter(Lane *self, int kind, int flag, long long begin, long long number, long long rows)
{
    for (int at = 0; at < PLACES; at++)
        if (self->places[at].kind == FREE) {
            self->places[at] = (Place){kind, flag, PyThread_get_thread_ident(), begin, number, rows};
            return at;
        }
    return -1;
}

USUAL static void leave(Lane *self, int place)
{
    if (place >= 0)
        self->places[place].kind = FREE;
}

/* An error of our own is set: tell of it, and go on. Returns -1 where what is set is the program's: what its signal handler
   has raised, or what is no Exception. */
RARE static int told(Lane *self, const char *where)
{
    PyObject *type, *error, *trace, *done;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL && error != NULL)
        PyException_SetTraceback(error, trace);
    done = PyObject_CallFunction(self->tell, "sO", where, error);
    int is_told = done != NULL;
    if (!is_told) {
        PyObject *other_type, *other, *other_trace;
        PyErr_Fetch(&other_type, &other, &other_trace);
        PyErr_NormalizeException(&other_type, &other, &other_trace);
        is_told = other != error && PyErr_GivenExceptionMatches(other_type, PyExc_Exception);
        if (is_told) {
            Py_XDECREF(other_type);
            Py_XDECREF(other);
            Py_XDECREF(other_trace);
        } else
            PyErr_Restore(other_type, other, other_trace);
    }
    Py_XDECREF(done);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return is_told ? 0 : -1;
}

/* The objects that count, for as long as a hook needs them: what it calls may put others into their place. */
typedef struct {
    Marks *rec;
    Loop *loop;
    Windows *windows;
} Held;

USUAL static Held hold(Lane *self)
{
    return (Held){(Marks *)Py_XNewRef((PyObject *)self->rec), (Loop *)Py_XNewRef((PyObject *)self->loop),
        (Windows *)Py_XNewRef((PyObject *)self->windows)};
}

USUAL static void release(Held held)
{
    Py_XDECREF(held.rec);
    Py_XDECREF(held.loop);
    Py_XDECREF(held.windows);
}

/* Whether everything is there, and nothing but counting is to be done in so many steps. */
USUAL static int is_usual(Held held, long long at, int steps)
{
    if (held.rec == NULL || held.loop == NULL || held.windows == NULL || held.rec->off || is_none(held.rec->folder))
        return 0;
    int is_left = PyList_Size(held.loop->left) != 0; /* -1: it is no list */
    PyErr_Clear();
    return !is_left && is_quiet(held.windows, at, steps);
}

/* --- Hooks: stand in for methods of MindSpore's classes -------------------------------------------------------------------- */

typedef struct {
    PyObject *first, *second; /* weak references: an object that is gone takes no other's number */
    long long number;
    int updates;
} Unit;

typedef struct {
    PyObject_HEAD
    int kind, flag, next_unit;
    Lane *lane;
    PyObject *original, *otherwise, *extra, *cache;
    Unit units[UNITS];
} Hook;

static int hook_traverse(Hook *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->lane);
    Py_VISIT(self->original);
    Py_VISIT(self->otherwise);
    Py_VISIT(self->extra);
    Py_VISIT(self->cache);
    for (int place = 0; place < UNITS; place++) {
        Py_VISIT(self->units[place].first);
        Py_VISIT(self->units[place].second);
    }
    return 0;
}

static int hook_clear(Hook *self)
{
    Py_CLEAR(self->lane);
    Py_CLEAR(self->original);
    Py_CLEAR(self->otherwise);
    Py_CLEAR(self->extra);
    Py_CLEAR(self->cache);
    for (int place = 0; place < UNITS; place++) {
        Py_CLEAR(self->units[place].first);
        Py_CLEAR(self->units[place].second);
    }
    return 0;
}

static void hook_dealloc(PyObject *self)
{
    ended(self, (inquiry)hook_clear);
}

static int hook_init(Hook *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"lane", "kind", "original", "otherwise", "flag", "extra", "cache", NULL};
    PyObject *lane, *original, *otherwise, *extra = Py_None, *cache = Py_None, *module = PyType_GetModule(Py_TYPE(self));
    int kind, flag = 0;
    if (module == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OiOO|iOO:Hook", keywords, &lane, &kind, &original, &otherwise, &flag, &extra, &cache))
        return -1;
    PyObject *type = PyObject_GetAttrString(module, "Lane");
    int fits = type != NULL && PyObject_TypeCheck(lane, (PyTypeObject *)type);
    Py_XDECREF(type);
    if (!fits || self->lane != NULL) {
        PyErr_SetString(PyExc_TypeError, "a hook is made once, with a Lane");
        return -1;
    }
    self->kind = kind;
    self->flag = flag;
    self->lane = (Lane *)Py_NewRef(lane);
    self->original = Py_NewRef(original);
    self->otherwise = Py_NewRef(otherwise);
    self->extra = Py_NewRef(extra);
    self->cache = Py_NewRef(cache);
    return 0;
}

/* As functions do: bound to the object that it is a method of. */
static PyObject *hook_get(Hook *self, PyObject *object, PyObject *type)
{
    if (is_none(object) || self->lane == NULL)
        return Py_NewRef((PyObject *)self);
    return PyObject_CallFunctionObjArgs(self->lane->method, (PyObject *)self, object, NULL);
}

/* Names, code and all else are those of the method that it stands in for. */
static PyObject *hook_attribute(Hook *self, PyObject *name)
{
    static const char *const ours[] = {"__wrapped__", "__class__", "__call__", "__get__"};
    int is_ours = 0;
    for (int place = 0; place < 4; place++)
        is_ours |= PyUnicode_CompareWithASCIIString(name, ours[place]) == 0;
    return is_ours || self->original == NULL ? PyObject_GenericGetAttr((PyObject *)self, name) : PyObject_GetAttr(self->original, name);
}

static PyMemberDef hook_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Hook, original), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* What the original did: its result, or what it raised. */
typedef struct {
    PyObject *result, *type, *error, *trace;
} Outcome;

USUAL static Outcome original(Hook *self, PyObject *args, PyObject *kwargs)
{
    Outcome outcome = {PyObject_Call(self->original, args, kwargs), NULL, NULL, NULL};
    if (outcome.result == NULL)
        PyErr_Fetch(&outcome.type, &outcome.error, &outcome.trace);
    return outcome;
}

/* Give it to the caller; `status` -1: what is set is the program's, and takes the place of all else. */
USUAL static PyObject *given(Outcome outcome, int status)
{
    if (status == 0) {
        if (outcome.result == NULL)
            PyErr_Restore(outcome.type, outcome.error, outcome.trace);
        return outcome.result;
    }
    Py_XDECREF(outcome.result);
    Py_XDECREF(outcome.type);
    Py_XDECREF(outcome.error);
    Py_XDECREF(outcome.trace);
    return NULL;
}

RARE static PyObject *in_python(Hook *self, PyObject *args, PyObject *kwargs)
{
    return PyObject_Call(self->otherwise, args, kwargs);
}

static int boundary(Loop *loop, Windows *windows, long long at)
{
    if (PySet_Clear(loop->pending) < 0 || PySet_Clear(loop->since) < 0)
        return -1;
    loop->fetched = 0;
    return step_done(windows, at);
}

/* A batch is asked for: as Loop._asked. 1: counted; 0: to be done in Python; -1: an error is set. */
USUAL static int asked(Loop *loop, Windows *windows, Tree *tree, long long at)
{
    if (PyThread_get_thread_ident() != loop->thread)
        return 0;
    PyObject *number = PyLong_FromLongLong(tree->number);
    if (number == NULL)
        return -1;
    Py_ssize_t pending = PySet_Size(loop->pending), feeding = PySet_Size(loop->feeding);
    int again = PySet_Contains(loop->since, number), feeds = PySet_Contains(loop->feeding, number), counted = -1;
    if (pending >= 0 && feeding >= 0 && again >= 0 && feeds >= 0) {
        int is_step = pending || (loop->fetched && !loop->updates_seen && tree->rows);
        counted = is_step || !(again && feeding && !feeds);
        if (is_step && boundary(loop, windows, at) < 0)
            counted = -1;
        if (counted == 1 && PySet_Add(loop->since, number) < 0)
            counted = -1;
        if (counted == 1)
            loop->fetched = 1;
    }
    Py_DECREF(number);
    return counted;
}

/* The iterator's tree; NULL: it has none, or none that we count. */
USUAL static Tree *tree_of(Lane *lane, PyObject *iterator)
{
    PyObject *attributes = PyObject_GenericGetDict(iterator, NULL), *tree = NULL;
    if (attributes != NULL)
        tree = PyDict_GetItemWithError(attributes, lane->names[KEY]);
    if (tree != NULL && PyObject_TypeCheck(tree, (PyTypeObject *)lane->types[TREE]))
        Py_INCREF(tree);
    else
        tree = NULL;
    Py_XDECREF(attributes);
    PyErr_Clear();
    return (Tree *)tree;
}

USUAL static PyObject *on_fetch(Hook *self, PyObject *args, PyObject *kwargs)
{
    Lane *lane = self->lane;
    long long begin = now(), end;
    Held held = hold(lane);
    Tree *tree = NULL;
    int counted = !lane->service && kwargs == NULL && PyTuple_Size(args) == 1 && is_usual(held, begin, 2);
    if (counted && (tree = tree_of(lane, PyTuple_GetItem(args, 0))) != NULL)
        counted = tree->plain && tree->rows && tree->rows + 1 < tree->take_at;
    if (counted && tree != NULL && !held.loop->model && !tree->hidden)
        counted = asked(held.loop, held.windows, tree, begin);
    if (counted <= 0 || tree == NULL) {
        int status = counted < 0 ? told(lane, "loop") : 0;
        Py_XDECREF(tree);
        release(held);
        return status < 0 ? NULL : in_python(self, args, kwargs);
    }
    int place = enter(lane, ON_FETCH, 0, begin, tree->number, tree->rows), flag = ROW;
    Outcome outcome = original(self, args, NULL);
    end = now();
    leave(lane, place);
    if (outcome.result == NULL)
        flag = PyErr_GivenExceptionMatches(outcome.type, PyExc_StopIteration) ? STOPPED : FAILED;
    int status = put(held.rec, FETCH, flag | (int)tree->other_thread, tree->number, tree->rows, begin, end);
    if (status < 0)
        status = told(lane, "fetch");
    if (outcome.result != NULL) {
        tree->rows++;
        tree->last_row = end;
    }
    Py_DECREF(tree);
    release(held);
    return given(outcome, status);
}

/* A number in what a RunContext holds; 0 where there is none. -1: an error is set. */
USUAL static long long number_in(PyObject *facts, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(facts, name);
    if (is_none(value))
        return PyErr_Occurred() ? -1 : 0;
    PyObject *number = PyNumber_Long(value);
    long long read = number != NULL ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return read;
}

/* Epoch and step of a RunContext. Returns -1 with an error set. */
USUAL static int read_context(Lane *lane, PyObject *context, long long *epoch, long long *step)
{
    PyObject *attributes = PyObject_GenericGetDict(context, NULL), *facts = NULL;
    PyErr_Clear();
    if (attributes != NULL)
        facts = PyDict_GetItemWithError(attributes, lane->names[ARGS]);
    Py_XINCREF(facts);
    Py_XDECREF(attributes);
    if (facts == NULL && !PyErr_Occurred())
        facts = PyObject_CallMethodObjArgs(context, lane->names[ORIGINAL_ARGS], NULL);
    if (facts == NULL)
        return -1;
    if (!PyObject_TypeCheck(facts, &PyDict_Type))
        PyErr_SetString(PyExc_TypeError, "the arguments of a RunContext are no dict");
    else {
        *epoch = number_in(facts, lane->names[EPOCH]);
        if (!PyErr_Occurred())
            *step = number_in(facts, lane->names[STEP]);
    }
    Py_DECREF(facts);
    return PyErr_Occurred() ? -1 : 0;
}

/* What is to be done when the callbacks of a step are over. Returns -1 with an error set. */
USUAL static int stepped(Lane *lane, Held held, PyObject *context, long long begin, long long end)
{
    long long epoch = 0, step = 0;
    if (held.loop != NULL && PyList_Size(held.loop->left) != 0 && (PyErr_Occurred() || call(held.loop, "end_left") < 0))
        return -1; /* an evaluation failed in a callback */
    if (read_context(lane, context, &epoch, &step) < 0)
        return -1;
    if (put(held.rec, TRAIN_STEP, 0, (unsigned long long)epoch, (unsigned long long)step, begin, end) < 0)
        return -1;
    return held.windows == NULL ? 0 : step_done(held.windows, end);
}

USUAL static PyObject *on_step(Hook *self, PyObject *args, PyObject *kwargs)
{
    Lane *lane = self->lane;
    if (lane->rec != NULL && lane->rec->off)
        return PyObject_Call(self->original, args, kwargs);
    long long begin = now(), end;
    Held held = hold(lane);
    if (kwargs != NULL || PyTuple_Size(args) != 2 || !is_usual(held, begin, 1)) {
        release(held);
        return in_python(self, args, kwargs);
    }
    int place = enter(lane, ON_STEP, TRAIN_STEP, begin, 0, 0);
    Outcome outcome = original(self, args, NULL);
    end = now();
    leave(lane, place);
    Held after = hold(lane); /* may be others by now */
    int status = stepped(lane, (Held){held.rec, after.loop, after.windows}, PyTuple_GetItem(args, 1), begin, end);
    if (status < 0)
        status = told(lane, "callback");
    if (status == 0 && outcome.result != NULL && after.windows != NULL && !is_none(after.windows->error))
        status = call(after.windows, "hand_over"); /* an error of the training's, which is raised there */
    release(after);
    release(held);
    return given(outcome, status);
}

USUAL static Unit *known(Hook *self, PyObject *first, PyObject *second)
{
    for (int place = 0; place < UNITS; place++) {
        Unit *unit = &self->units[place];
        if (unit->first == NULL || PyWeakref_GetObject(unit->first) != first)
            continue;
        if (unit->second == NULL ? is_none(second) : PyWeakref_GetObject(unit->second) == second)
            return unit;
    }
    return NULL;
}

/* Ask Python for the number of what is called, and remember it where it may be remembered. -1: an error is set. */
RARE static int find_unit(Hook *self, PyObject *owner, PyObject *first, PyObject *second, long long *number, int *updates)
{
    PyObject *found = PyObject_CallFunctionObjArgs(self->extra, owner, NULL);
    int is_read = found != NULL && PyArg_ParseTuple(found, "Lp", number, updates);
    Py_XDECREF(found);
    if (!is_read)
        return -1;
    PyObject *one = PyWeakref_NewRef(first, NULL), *other = one == NULL || is_none(second) ? NULL : PyWeakref_NewRef(second, NULL);
    if (PyErr_Occurred() || is_none(first)) {
        PyErr_Clear();
        Py_XDECREF(one);
        Py_XDECREF(other);
        return 0;
    }
    Unit before = self->units[self->next_unit];
    self->units[self->next_unit] = (Unit){one, other, *number, *updates};
    self->next_unit = (self->next_unit + 1) % UNITS;
    Py_XDECREF(before.first);
    Py_XDECREF(before.second);
    return 0;
}

/* As steps._unit, from memory where what is called is an object that was called before. */
USUAL static int unit_of(Hook *self, PyObject *owner, long long *number, int *updates)
{
    PyObject *first = self->flag == JIT ? PyObject_GetAttr(owner, self->lane->names[FN]) : Py_NewRef(owner);
    PyObject *second = self->flag == JIT && first != NULL ? PyObject_GetAttr(owner, self->lane->names[OBJ]) : NULL;
    int status = -1;
    if (!PyErr_Occurred()) {
        Unit *unit = known(self, first, second);
        if (unit != NULL) {
            *number = unit->number;
            *updates = unit->updates;
            status = 0;
        } else
            status = find_unit(self, owner, first, second, number, updates);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return status;
}

/* As Loop.before_update. */
USUAL static int before_update(Loop *loop, Windows *windows, long long unit, long long at)
{
    PyObject *number = PyLong_FromLongLong(unit), *feeding = NULL;
    int status = -1, again;
    loop->updates_seen = 1;
    if (number == NULL || (feeding = PyNumber_InPlaceOr(loop->feeding, loop->since)) == NULL)
        goto end;
    if ((again = PySet_Contains(loop->pending, number)) < 0)
        goto end;
    if (again) {
        loop->closing = loop->last;
        if (boundary(loop, windows, at) < 0)
            goto end;
    }
    status = PySet_Add(loop->pending, number);
end:
    Py_XDECREF(feeding);
    Py_XDECREF(number);
    return status;
}

/* The call of an optimizer or a graph is over. Returns -1 with an error set. */
USUAL static int called(Held held, int flag, int updates, int updated, long long number, long long begin, long long end, int is_done)
{
    if (held.loop == NULL || held.windows == NULL)
        return 0;
    if (updates && !is_none(held.windows->folder) && (flag == OPTIMIZER || !held.loop->model) && call(held.windows, "settle") < 0)
        return -1;
    unsigned long long unit = (unsigned long long)number;
    int status = is_done ? put(held.rec, updates ? UPDATE : CALL, flag, unit, 0, begin, end) : put(held.rec, CALL, GRADIENT, 0, 0, begin, begin);
    if (status < 0 || !updated || held.loop->model)
        return status;
    held.loop->last = number;
    return !held.loop->fetched && number == held.loop->closing ? boundary(held.loop, held.windows, end) : 0;
}

/* What is to be counted before the call; 1: done; 0: to be done in Python; -1: an error is set. */
USUAL static int before_call(Hook *self, Held held, PyObject *owner, long long at, long long *number, int *updates, int *updated)
{
    if (unit_of(self, owner, number, updates) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return -1;
        PyErr_Clear(); /* the Python hook meets it as well, and tells of it */
        return 0;
    }
    Lane *lane = self->lane;
    if (held.rec != lane->rec || held.loop != lane->loop || held.windows != lane->windows || !is_usual(held, at, 2))
        return 0;
    if (*updates && !held.loop->model && !held.loop->fetched)
        return 0; /* the training may have another loader, which the Python hook looks for */
    if (*updates || !held.loop->updates_seen)
        held.loop->thread = PyThread_get_thread_ident();
    *updated = *updates && !held.loop->model; /* otherwise the callbacks of Model tell the steps */
    return *updated && before_update(held.loop, held.windows, *number, at) < 0 ? -1 : 1;
}

USUAL static PyObject *on_call(Hook *self, PyObject *args, PyObject *kwargs)
{
    Lane *lane = self->lane;
    if ((lane->rec != NULL && lane->rec->off) || (lane->loop != NULL && lane->loop->inside))
        return PyObject_Call(self->original, args, kwargs);
    long long begin = now(), end, number = 0;
    int updates = 0, updated = 0, counted = 0, status = 0;
    Held held = hold(lane);
    if (PyTuple_Size(args) >= 1 && is_usual(held, begin, 2))
        counted = before_call(self, held, PyTuple_GetItem(args, 0), begin, &number, &updates, &updated);
    if (counted <= 0) {
        status = counted < 0 ? told(lane, "call") : 0;
        release(held);
        if (status < 0)
            return NULL;
        return counted < 0 ? PyObject_Call(self->original, args, kwargs) : in_python(self, args, kwargs);
    }
    held.loop->inside++;
    held.loop->calls++;
    int place = enter(lane, ON_CALL, self->flag, begin, 0, 0);
    Outcome outcome = original(self, args, kwargs);
    end = now();
    leave(lane, place);
    Held after = hold(lane); /* may be others by now, which count this call */
    if (after.loop != NULL)
        after.loop->inside--;
    status = called((Held){held.rec, after.loop, after.windows}, self->flag, updates, updated, number, begin, end, outcome.result != NULL);
    if (status < 0)
        status = told(lane, "call");
    release(after);
    release(held);
    return given(outcome, status);
}

USUAL static PyObject *on_compile(Hook *self, PyObject *args, PyObject *kwargs)
{
    Lane *lane = self->lane;
    if (lane->rec != NULL && lane->rec->off)
        return PyObject_Call(self->original, args, kwargs);
    int has_cache = !is_none(self->cache);
    Py_ssize_t before = has_cache ? PyObject_Size(self->cache) : 0;
    if (lane->rec == NULL || lane->rec->graph_lines || before < 0) {
        PyErr_Clear();
        return in_python(self, args, kwargs);
    }
    Place *caller = &lane->places[0]; /* in the call of a graph its begin serves: the clock is read once */
    int is_called = caller->kind == ON_CALL && caller->thread == PyThread_get_thread_ident(), fresh = 0, status = 0;
    long long begin = is_called ? caller->begin : now();
    int place = is_called ? -1 : enter(lane, ON_COMPILE, 0, begin, 0, 0);
    Outcome outcome = original(self, args, kwargs);
    leave(lane, place);
    if (outcome.result == NULL)
        return given(outcome, 0);
    if (has_cache)
        fresh = PyObject_Size(self->cache) > before;
    else if (PyObject_TypeCheck(outcome.result, &PyTuple_Type)) {
        Py_ssize_t size = PyTuple_Size(outcome.result);
        fresh = size > 0 && PyTuple_GetItem(outcome.result, size - 1) == Py_True;
    }
    if (fresh) {
        PyObject *done = PyObject_CallFunction(self->extra, "OOL", args, outcome.result, begin);
        status = done == NULL ? -1 : 0;
        Py_XDECREF(done);
    }
    if (PyErr_Occurred())
        status = told(lane, "compile");
    return given(outcome, status);
}

/* --- A pass through the callbacks of a manager ------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    Hook *hook;
    PyObject *callbacks, *callback;
    Py_ssize_t next;
    long long begin;
} Pass;

static int pass_traverse(Pass *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->hook);
    Py_VISIT(self->callbacks);
    Py_VISIT(self->callback);
    return 0;
}

static int pass_clear(Pass *self)
{
    Py_CLEAR(self->hook);
    Py_CLEAR(self->callbacks);
    Py_CLEAR(self->callback);
    return 0;
}

static void pass_dealloc(PyObject *self)
{
    ended(self, (inquiry)pass_clear);
}

USUAL static PyObject *pass_next(Pass *self)
{
    PyObject *before = self->callback, *callback;
    if (self->callbacks == NULL)
        return NULL;
    long long begin = self->begin;
    self->callback = NULL;
    self->begin = now();
    if (before != NULL && self->begin - begin >= SHORTEST_NS) {
        PyObject *done = PyObject_CallFunction(self->hook->extra, "OLL", before, begin, self->begin);
        Py_XDECREF(done);
        if (done == NULL && told(self->hook->lane, "around") < 0) {
            Py_DECREF(before);
            return NULL;
        }
    }
    Py_XDECREF(before);
    if (self->next >= PyList_Size(self->callbacks)) {
        Py_CLEAR(self->callbacks);
        return NULL;
    }
    callback = Py_NewRef(PyList_GetItem(self->callbacks, self->next++));
    self->callback = Py_NewRef(callback);
    return callback;
}

USUAL static PyObject *on_callbacks(Hook *self, PyObject *args, PyObject *kwargs)
{
    PyObject *callbacks = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : NULL;
    if (callbacks == NULL || !PyObject_TypeCheck(callbacks, &PyList_Type))
        return in_python(self, args, kwargs);
    PyTypeObject *type = (PyTypeObject *)self->cache;
    Pass *pass = (Pass *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (pass == NULL) {
        PyErr_Clear();
        return PyObject_Call(self->original, args, kwargs);
    }
    pass->hook = (Hook *)Py_NewRef((PyObject *)self);
    pass->callbacks = Py_NewRef(callbacks);
    return (PyObject *)pass;
}

USUAL static PyObject *hook_call(Hook *self, PyObject *args, PyObject *kwargs)
{
    switch (self->lane == NULL ? FREE : self->kind) {
    case ON_FETCH: return on_fetch(self, args, kwargs);
    case ON_STEP: return on_step(self, args, kwargs);
    case ON_CALL: return on_call(self, args, kwargs);
    case ON_COMPILE: return on_compile(self, args, kwargs);
    case ON_CALLBACKS: return on_callbacks(self, args, kwargs);
    default: PyErr_SetString(PyExc_RuntimeError, "a hook of no kind"); return NULL;
    }
}

/* --- Files where few descriptors are left -----------------------------------------------------------------------------------

The interpreter's lock is kept meanwhile: the descriptor that this takes is no other Python thread's for that time.
fstat and fcntl are asked of the kernel: by their names they bind the file to a newer glibc than the oldest Python's. */

static PyObject *append_at_once(PyObject *module, PyObject *args)
{
    PyObject *path;
    unsigned long long device, inode;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "O&KKy#", PyUnicode_FSConverter, &path, &device, &inode, &data, &size))
        return NULL;
    struct stat facts;
    ssize_t written = -1;
    int number = open(PyBytes_AsString(path), O_WRONLY | O_APPEND | O_CLOEXEC);
    int error = number < 0 ? errno : 0;
    if (number >= 0) {
        if (syscall(SYS_fstat, number, &facts) < 0)
            error = errno;
        else if (facts.st_dev != device || facts.st_ino != inode)
            error = ESTALE;
        else if ((written = write(number, data, size)) < 0)
            error = errno;
        close(number);
    }
    Py_DECREF(path);
    if (written < 0) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromSsize_t(written);
}

/* Between a look at a number and its close in Python another thread may take the number: os.close gives the interpreter's
lock away before it closes. */

static PyObject *close_own(PyObject *module, PyObject *args)
{
    int number, opened, closed = 0;
    unsigned long long device, inode;
    struct stat facts;
    if (!PyArg_ParseTuple(args, "iKKp", &number, &device, &inode, &opened))
        return NULL;
    if (syscall(SYS_fstat, number, &facts) == 0 && facts.st_dev == device && facts.st_ino == inode) {
        long flags = opened ? syscall(SYS_fcntl, number, F_GETFL) : O_NONBLOCK;
        closed = flags >= 0 && (flags & O_NONBLOCK) && close(number) == 0;
    }
    return PyBool_FromLong(closed);
}

#define ASKED_AT_ONCE 1024

static PyObject *count_open(PyObject *module, PyObject *limit)
{
    struct pollfd asked[ASKED_AT_ONCE];
    long most = PyLong_AsLong(limit), open_files = 0;
    if (most == -1 && PyErr_Occurred())
        return NULL;
    for (long first = 0; first < most; first += ASKED_AT_ONCE) {
        long count = most - first < ASKED_AT_ONCE ? most - first : ASKED_AT_ONCE;
        for (long at = 0; at < count; at++)
            asked[at] = (struct pollfd){(int)(first + at), 0, 0};
        if (poll(asked, (nfds_t)count, 0) < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
        for (long at = 0; at < count; at++)
            open_files += !(asked[at].revents & POLLNVAL);
    }
    return PyLong_FromLong(open_files);
}

static PyMethodDef module_methods[] = {
    {"append_at_once", append_at_once, METH_VARARGS, "Open a file, write at its end, close: path, device, inode, data."},
    {"close_own", close_own, METH_VARARGS, "Close a number, if it is that file, and opened here: number, device, inode, opened."},
    {"count_open", count_open, METH_O, "How many of the first descriptors are open; none is taken for that, nor the lock given away."},
    {NULL, NULL, 0, NULL},
};

/* --- The module ------------------------------------------------------------------------------------------------------------- */

#define GC (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC)
#define SLOT(name, function) {Py_tp_##name, (void *)(function)}

static PyType_Slot marks_slots[] = {SLOT(traverse, marks_traverse), SLOT(clear, marks_clear), SLOT(dealloc, marks_dealloc),
    SLOT(methods, marks_methods), SLOT(members, marks_members), {0, NULL}};
static PyType_Slot tree_slots[] = {SLOT(traverse, tree_traverse), SLOT(clear, tree_clear), SLOT(dealloc, tree_dealloc),
    SLOT(members, tree_members), {0, NULL}};
static PyType_Slot loop_slots[] = {SLOT(traverse, loop_traverse), SLOT(clear, loop_clear), SLOT(dealloc, loop_dealloc),
    SLOT(members, loop_members), {0, NULL}};
static PyType_Slot windows_slots[] = {SLOT(traverse, windows_traverse), SLOT(clear, windows_clear), SLOT(dealloc, windows_dealloc),
    SLOT(members, windows_members), {0, NULL}};
static PyType_Slot lane_slots[] = {SLOT(traverse, lane_traverse), SLOT(clear, lane_clear), SLOT(dealloc, lane_dealloc),
    SLOT(init, lane_init), SLOT(members, lane_members), SLOT(getset, lane_getset), SLOT(methods, lane_methods), {0, NULL}};
static PyType_Slot hook_slots[] = {SLOT(traverse, hook_traverse), SLOT(clear, hook_clear), SLOT(dealloc, hook_dealloc),
    SLOT(init, hook_init), SLOT(members, hook_members), SLOT(call, hook_call), SLOT(descr_get, hook_get),
    SLOT(getattro, hook_attribute), {0, NULL}};
static PyType_Slot pass_slots[] = {SLOT(traverse, pass_traverse), SLOT(clear, pass_clear), SLOT(dealloc, pass_dealloc),
    SLOT(iter, PyObject_SelfIter), SLOT(iternext, pass_next), {0, NULL}};

static PyType_Spec specs[] = {
    {"_hooks.Marks", sizeof(Marks), 0, GC | Py_TPFLAGS_BASETYPE, marks_slots},
    {"_hooks.Tree", sizeof(Tree), 0, GC | Py_TPFLAGS_BASETYPE, tree_slots},
    {"_hooks.Loop", sizeof(Loop), 0, GC | Py_TPFLAGS_BASETYPE, loop_slots},
    {"_hooks.Windows", sizeof(Windows), 0, GC | Py_TPFLAGS_BASETYPE, windows_slots},
    {"_hooks.Lane", sizeof(Lane), 0, GC, lane_slots},
    {"_hooks.Hook", sizeof(Hook), 0, GC | Py_TPFLAGS_METHOD_DESCRIPTOR, hook_slots},
    {"_hooks.Pass", sizeof(Pass), 0, GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, pass_slots},
    {NULL, 0, 0, 0, NULL},
};

static int executed(PyObject *module)
{
    for (PyType_Spec *spec = specs; spec->name != NULL; spec++) {
        PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
        int status = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);
        Py_XDECREF(type);
        if (status < 0)
            return -1;
    }
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)executed}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_hooks", "Hooks of each training step.", 0, module_methods, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__hooks(void)
{
    return PyModuleDef_Init(&definition);
}
